"""Rules about access: rights that are granted, keys that are made, and data that is opened to everybody."""

from __future__ import annotations

from agent_hooks.guards.shell.rules.outside import Loss, losses

_WHY = "grants rights, or makes a key that grants them"
_CLOUDS = (
    r"\b(?:attach-(?:user|role|group)-policy|put-(?:user|role|group|bucket|key|queue|resource|registry|"
    r"repository)-policy"
    r"|create-access-key|create-login-profile|update-login-profile|add-user-to-group|"
    r"create-policy-version|update-assume-role-policy"
    r"|set-default-policy-version|add-role-to-instance-profile|put-bucket-acl|put-object-acl|"
    r"put-public-access-block|delete-public-access-block"
    r"|authorize-security-group-\w+|add-permission|create-user|create-role|create-grant|create-key-pair|import-key-pair"
    r"|create-service-specific-credential|attach-principal-policy|associate-access-policy|"
    r"create-account-assignment|set-queue-attributes"
    r"|add-permission-to-\w+|put-resource-policy|deactivate-mfa-device|modify-db-instance .*--publicly-accessible)\b"
    r"|--acl[= ](?:public|authenticated)|--grants?[= ]"
)
RULES = losses(
    (
        Loss("access", "aws", _CLOUDS, _WHY),
        Loss(
            "access",
            "gcloud gsutil bq",
            (
                r"\b(?:add|set|remove)-iam-policy(?:-binding)?\b|\bservice-accounts (?:create|keys create|enable)\b|"
                r"\biam (?:ch|set)\b|\bacl (?:ch|set)\b|\bdefacl (?:ch|set)\b|--allow-unauthenticated\b|"
                r"\broles (?:create|update)\b|firewall-rules create .*0\.0\.0\.0/0|\bapi-keys create\b"
            ),
            _WHY,
        ),
        Loss(
            "access",
            "az",
            (
                r"\brole (?:assignment|definition) (?:create|update)\b|\bad (?:sp|app|user|group) (?:create|"
                r"create-for-rbac|credential reset|member add|permission (?:add|grant|admin-consent)|owner add)\b|"
                r"\b(?:keys? renew|generate-sas|set-policy|public-access|allow-blob-public-access)\b|"
                r"--public-access (?:blob|container)|nsg rule create .*(?:\*|Internet|0\.0\.0\.0/0)"
            ),
            _WHY,
        ),
        Loss(
            "access",
            "kubectl k oc",
            (
                r"\bcreate (?:clusterrole|role|clusterrolebinding|rolebinding|serviceaccount|sa|token|secret)\b|"
                r"\badm policy add-|\bpolicy add-role|\bcertificate approve\b|\bcreate token\b|\badm groups add-users|"
                r"\bset (?:subject|serviceaccount)\b|"
                r"\blabel\b.* pod-security\.kubernetes\.io/enforce=privileged"
            ),
            _WHY,
            r"\bcreate secret\b",
        ),
        Loss(
            "access",
            "gh glab tea hub",
            (
                r"\bapi\b.*\b(?:PUT|POST|PATCH)\b.*(?:collaborators|memberships|keys|hooks|invitations|protection|"
                r"permissions|teams)|^gh (?:ssh-key|gpg-key) add\b|^gh repo deploy-key add|^gh (?:org|secret|"
                r"variable) (?:set|invite)|"
                r"^gh api\b.* (?:visibility=public|private=false)|^gh repo edit\b.*(?:--visibility|--accept-visibility)|"
                r"^glab (?:ssh-key|"
                r"deploy-key|token) (?:add|create)|^glab variable (?:set|update)|^gh auth (?:refresh|"
                r"login).*(?:admin:|delete_repo)"
            ),
            _WHY,
        ),
        Loss(
            "access",
            "npm pnpm yarn cargo gem",
            (
                r"^\S+ (?:npm )?(?:owner\b.*(?:\badd\b|--add|-a\b|\brm\b|--remove|-r\b)|access (?:grant|revoke|set|"
                r"public|restricted|edit)|token (?:create|revoke|delete)|team (?:add|rm|create|destroy)|org (?:set|rm|"
                r"add)|adduser|profile set|hook (?:add|rm|update))\b"
            ),
            _WHY,
        ),
        Loss(
            "access",
            "vault bao",
            (
                r"^\S+ (?:policy (?:write|delete)|token (?:create|renew)|auth (?:enable|tune)|write auth/|"
                r"write sys/policy|write \S*identity/|operator (?:init|generate-root|rekey|unseal)|secrets enable)\b"
            ),
            _WHY,
        ),
        Loss(
            "access",
            (
                "psql mysql mariadb sqlcmd sqlplus mongosh mongo cockroach snowsql clickhouse-client cqlsh redis-cli "
                "duckdb"
            ),
            (
                r"\b(?:grant\s+[\w, *()]+\s+(?:on|to)\b|create\s+(?:super)?(?:user|role|login)\b|alter\s+(?:user|role|"
                r"login)\b|revoke\s+[\w, ]+\s+(?:on|from)\b|grantRolesToUser|createUser\(|updateUser\(|acl setuser|"
                r"config set (?:requirepass|protected-mode|dir|dbfilename))"
            ),
            _WHY,
            whole=True,
        ),
        Loss(
            "access",
            "usermod gpasswd adduser addgroup groupmod pw dscl dseditgroup",
            (
                r"^(?:usermod|gpasswd)\b.*(?:-aG|-G|-a |--append|--add|-u 0|-o\b)|^adduser \S+ \S+$|^(?:pw) (?:group|"
                r"user)mod|^dscl .*(?:-append|-create)|^dseditgroup .*-a\b|^adduser .*(?:sudo|wheel|docker|root)"
            ),
            _WHY,
        ),
        Loss("access", "useradd", r"(?:-o\b|-u 0\b|-G\S* ?\S*(?:sudo|wheel|root|docker)|--non-unique)", _WHY),
        Loss(
            "access",
            (
                "ssh-copy-id htpasswd createuser kcadm.sh kcadm ipa samba-tool net okta-cli auth0 authelia keycloak "
                "dsadd dsmod ldapadd ldapmodify redis-acl"
            ),
            (
                r"^(?:ssh-copy-id|createuser|ldapadd|ldapmodify|dsadd|dsmod) \S|^htpasswd -|\b(?:add-roles|add-member|"
                r"group-add-member|user-add|set-password|user (?:add|create)|users? (?:create|add|roles add)|"
                r"create users|localgroup \S+ \S+ /add|user \S+ \S+ /add|user \S+ /add)\b"
            ),
            _WHY,
            r"^ssh-copy-id -n\b",
        ),
        Loss(
            "access",
            "tailscale headscale teleport tsh tctl boundary",
            (
                r"^tailscale (?:up|funnel|serve|set|file cp)\b|\b(?:users|tokens|preauthkeys|create|rm) (?:add|create|"
                r"delete|rm)\b|^tctl (?:create|rm|edit|users|tokens)"
            ),
            _WHY,
            r"\b(?:status|ls|list)\b",
        ),
        Loss(
            "access",
            "heroku vercel netlify fly flyctl firebase supabase railway doctl hcloud",
            (
                r"\b(?:access:add|members:add|access:update|teams? (?:invite|add)|tokens? (?:create|new)|"
                r"authorizations:create|orgs? invite|keys:add|ssh-key create|login:ci)\b"
            ),
            _WHY,
        ),
        Loss("access", "xhost", r"\+", "opens the display to everybody"),
    )
)
