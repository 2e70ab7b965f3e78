"""Rules about clouds, hosts of programs, and tools that change many machines or mail many people at once."""

from __future__ import annotations

from agent_hooks.guards.shell.rules.outside import Loss, losses

_WHY = "removes or replaces resources of the cloud"
_INFRA = "destroys infrastructure, or changes it unseen"
# A verb among the words of a command: `delete`, `delete-stack`, `apps:destroy`, `domains_delete`.
_VERB = (
    r"(?:^|[ :_.-])(?:delete\w*|destroy\w*|remove|rm|rb|del|purge\w*|terminate|teardown|tear-down|wipe|"
    r"erase|nuke|deprovision|decommission|"
    r"deallocate|revoke|undeploy|uninstall|unlink-all|drop|reset|truncate|obliterate|detach|"
    r"release-address|suspend|unregister|clean)"
    r"(?=$|[ :_.-])(?!\.\w)"
)
_LISTS = r"\b(?:list|describe|show|info|status|logs|plan|preview)\b"
RULES = losses(
    (
        Loss(
            "cloud",
            "aws",
            (
                r"^aws (?:-\S+ \S+ )*(?:--\S+ )*[\w-]+ (?:wait )?(?:terminate|delete|remove|deregister|purge|schedule|"
                r"cancel|disable|detach|disassociate|release|revoke|reset|stop-logging|stop-configuration|leave|close|"
                r"decrease|batch-delete|empty|abort|deactivate|unsubscribe|unlink|reject|restore-table|"
                r"modify-db-instance|put-bucket-(?:lifecycle\S*|versioning|replication|encryption|website)|"
                r"put-lifecycle\S*|change-resource-record-sets|delete\S*)\S*\b|\bs3 (?:rb|rm)\b|\bs3 mv\b|"
                r"\bs3 sync\b.*--delete\b|--desired-(?:count|capacity)[= ]0\b|"
                r"--no-(?:deletion-protection|disable-api-termination|"
                r"enable-deletion|versioning)|Status=Suspended|\bupdate-continuous-backups .*false"
            ),
            _WHY,
            r"^aws \S+ (?:describe|list|get|help|batch-get)|--dry-run",
        ),
        Loss(
            "cloud",
            "gcloud",
            (
                rf"(?:{_VERB}|\bcancel\b|\bdisable\b|\brecord-sets (?:update|transaction execute)|--num-nodes[= ]0\b|"
                rf"\bresize\b.*=0)"
            ),
            _WHY,
            (
                r"\bbuilds? (?:list|log)|\bconfig (?:unset|set|configurations delete)\b|\bauth revoke\b|"
                r"\bcomponents remove\b|\b(?:list|describe)\b"
            ),
        ),
        Loss(
            "cloud", "gsutil", r"\b(?:rm|rb|mv|rsync\b.* -\w*d\w*|lifecycle set|versioning set off|retention)\b", _WHY
        ),
        Loss(
            "cloud",
            "az azd azcopy func",
            rf"(?:{_VERB}|\bdelete-batch\b|^azd down\b|--delete-destination|\bdisable\b|\bfailover\b)",
            _WHY,
            r"\b(?:list|show)\b|^az account clear|^az config unset|^az extension remove",
        ),
        Loss(
            "cloud",
            "doctl flyctl fly heroku vercel netlify wrangler firebase railway render linode-cli hcloud oci "
            "ibmcloud scw vultr-cli openstack "
            "nova cinder glance neutron swift cf eb copilot sam serverless sls amplify cdk8s mc s3cmd s5cmd b2 "
            "upctl exo civo equinix metal "
            "civo koyeb porter northflank zeabur deployctl deta aptible dokku caprover kamal now surge pages "
            "workers fastly flarectl akamai "
            "cloudflared cdncli bunny ns1 dnscontrol gandi namecheap godaddy porkbun rclone-cloud databricks "
            "dbt-cloud snyk vantage clever "
            "scalingo platform upsun pantheon terminus acli wpengine cpanel uapi whmapi1 zoho twilio sendgrid "
            "mailgun postmark segment launchdarkly "
            "ldcli flagsmith unleash auth0 okta okta-cli kcadm.sh kcadm fusionauth clerk stytch workos onelogin "
            "ory hydra keto kratos contentful "
            "sanity strapi storyblok prismic shopify magento bin/magento wp drush saltbox digitalocean zammad "
            "hubspot salesforce sf sfdx",
            (
                rf"(?:{_VERB}|\bscale\b.* (?:count )?(?:\S+[= ])?0\b|^fly scale count 0|\bdown (?:-y|--yes)|"
                rf"ps:scale \S+=0|maintenance:on|--prod\b.*--force|\bdel\b|\bcancel\b|force:org:delete|\bdisable\b|"
                rf"purge-all|\bdb (?:reset|drop|clean)\b|search-replace|\bplugin delete)"
            ),
            _WHY,
            (
                r"\b(?:list|ls|show|info|status|logs|describe|get|tail|emulators:start|dev)\b(?! --purge)|^(?:fly|"
                r"flyctl|heroku|vercel) (?:auth|logout)\b|^wp (?:cache|transient) |^heroku (?:git:remote|"
                r"config:unset)|^swift (?:build|test|package)"
            ),
        ),
        Loss(
            "cloud",
            "certbot rndc nsupdate knotc pdnsutil",
            (
                r"^certbot (?:revoke|delete|unregister)|^rndc (?:delzone|stop|halt|flush\w*|freeze)|^nsupdate(?: |$)|"
                r"^knotc (?:zone-purge|zone-unset|conf-unset)|^pdnsutil (?:delete\S*|clear\S*)"
            ),
            _WHY,
        ),
        Loss(
            "iac",
            "terraform tofu terragrunt terramate",
            (
                r"\b(?:destroy|apply\b.*-destroy|apply\b.*-auto-approve|state (?:rm|push|replace-provider|mv)|"
                r"force-unlock|workspace delete|taint|run-all (?:destroy|apply)|import .*-auto|apply-all|"
                r"destroy-all)\b"
            ),
            _INFRA,
            r"^\S+ (?:-\S+ )*(?:plan|show|output|graph|validate|init|fmt)\b",
        ),
        Loss(
            "iac",
            "pulumi cdk cdktf sst crossplane spacectl env0 tfc nitric wing",
            (
                r"^\S+ (?:-\S+ )*(?:destroy|remove|rm|stack rm|state (?:delete|unprotect)|cancel|refresh --yes|down|"
                r"delete)\b"
            ),
            _INFRA,
        ),
        Loss(
            "iac",
            "ansible ansible-playbook ansible-pull",
            (
                r"state=(?:absent|stopped)\b|\b-m (?:shell|command|raw|script)\b.*\b(?:rm|dd|mkfs|shutdown|reboot|"
                r"systemctl stop)\b|"
                r"^ansible\b.* -a \S*.*\b(?:rm -\w*r|shutdown|reboot|mkfs|dd if)\b|\b(?:teardown|destroy|wipe|"
                r"uninstall|decommission)\S*\.ya?ml\b"
            ),
            "changes many machines at once",
            r"-C\b|^ansible localhost\b|(?:-c|--connection)[= ]local\b",
            whole=True,
        ),
        Loss(
            "iac",
            (
                "salt salt-ssh salt-key pssh pdsh clush mco knife puppet chef-client bolt fab capistrano cap nixops "
                "colmena deploy-rs"
            ),
            (
                r"\b(?:rm -\w*r|systemctl (?:stop|disable|mask)|system\.(?:shutdown|reboot|halt|poweroff)|"
                r"pkg\.(?:remove|purge)|file\.remove|"
                r"service\.stop|node (?:purge|delete|clean|deactivate)|bulk delete|client delete|bag delete|"
                r"cookbook delete|delete|reboot|shutdown|-d \S+|-D|destroy|purge)\b"
            ),
            "changes many machines at once",
            r"\b(?:list|show|status|test\.ping)\b",
            whole=True,
        ),
        Loss(
            "cloud",
            "ldapdelete dsdel dsrm ldapmodrdn ipa samba-tool kadmin kadmin.local",
            (
                r"^(?:ldapdelete|dsdel|dsrm|ldapmodrdn) \S|\b(?:user-del|group-del|host-del|\S+-del|delete|delprinc|"
                r"delete_principal|ktremove|cpw|change_password)\b"
            ),
            "removes entries of a directory",
        ),
        Loss(
            "cloud",
            (
                "ipmitool racadm redfishtool ilorest omconfig nvram flashrom fwupdmgr fwupdtool sas2ircu storcli "
                "megacli mstflint ethtool"
            ),
            (
                r"\bpower (?:off|cycle|reset|soft)\b|\b(?:racreset|racresetcfg|serveraction|delete|erase|wipe|"
                r"-EraseData|mc reset|raw |factory|clear)\b|^nvram -c|^flashrom\b.* -(?:w|E)\b|^fwupd\w+ (?:downgrade|"
                r"install)|\bconfig (?:reset|clear)"
            ),
            "switches a machine off or rewrites its firmware",
        ),
        Loss("cloud", "sacctmgr", r"\b(?:delete|remove)\b", "removes accounts or users of a cluster"),
        Loss(
            "cloud",
            "hdfs hadoop",
            r"^\S+ (?:dfs|fs) .*-(?:rmr\b|expunge\b|rm (?:-\S+ )*-(?:\w*[rR]\w*|skipTrash)\b|truncate\b)|"
            r"\bnamenode -format\b",
            "removes a tree of the cluster's file system",
            r"(?:^| )(?:hdfs://[^/ ]*)?/tmp/\S+$",
        ),
        Loss(
            "send-out",
            "sendmail mail mailx mutt neomutt swaks s-nail msmtp ssmtp himalaya nodemailer",
            r"@|^sendmail \S",
            "sends a message, which cannot be taken back",
            r"^(?:sendmail) -(?:bp|bt|bv|q)|-H$|^mail -(?:e|f|u)\b|\bswaks\b.*--quit-after",
        ),
        Loss(
            "send-out",
            (
                "slack-cli slack slackcat discord telegram-send apprise ntfy pushover signal-cli matrix-commander "
                "toot twurl t mastodon twitter"
            ),
            (
                r"\b(?:chat send|send|publish|post|broadcast|tweet|update|toot|POST|delete)\b|^(?:telegram-send|"
                r"slackcat|apprise|matrix-commander) \S"
            ),
            "sends a message, which cannot be taken back",
        ),
    )
)
