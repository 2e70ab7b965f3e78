"""Rules about services for teams: builds and their settings, monitoring, payments, and purses."""

from __future__ import annotations

from agent_hooks.guards.shell.rules.outside import Loss, losses

_CI = "removes or changes builds, deployments or the settings that others rely on"
_EYES = "removes or mutes monitoring, alarms or logs"
_MONEY = "moves money, or changes the data of customers"
RULES = losses(
    (
        Loss(
            "ci",
            "gh hub",
            (
                r"^\S+ (?:workflow disable|(?:run|cache|repo|release|issue|codespace|gist|label|project|secret|"
                r"variable|ruleset|environment|ssh-key|gpg-key|cs|discussion|extension|attestation) (?:delete|"
                r"delete-asset|archive|remove|item-delete|field-delete|close --yes)|repo (?:rename|sync --force|"
                r"delete|transfer|deploy-key delete)|pr merge\b.*--admin|repo edit\b.*(?:--delete-branch|"
                r"--default-branch|--enable-\S+=false)|auth logout|org delete|codespace delete|cache delete|"
                r"issue transfer|alias delete|api\b.*(?:--method|-X)[= ]?(?:PUT|PATCH)\b.*(?:archived|transfer|"
                r"protection|default_branch))\b"
            ),
            _CI,
            r"^gh (?:extension|alias|codespace) remove",
        ),
        Loss(
            "ci",
            "glab tea",
            (
                r"^\S+ (?:\S+ )?(?:ci|pipeline|pipe|repo|project|variable|release|schedule|issue|label|mr|snippet|"
                r"runner|cluster|deploy-key|ssh-key|token|user|milestone|iteration|securefile|stack) (?:delete|del|rm|"
                r"archive|remove|transfer|revoke|unschedule)\b|^glab mr merge\b.*(?:--yes|-y|--rebase)"
            ),
            _CI,
        ),
        Loss(
            "ci",
            (
                "circleci jenkins-cli jenkins-cli.jar drone woodpecker-cli buildkite-agent bk argocd argo tkn travis "
                "flux spin spinnaker concourse teamcity gocd semaphore sem appveyor bitrise codefresh cirun dagger "
                "octopus octo harness werf earthly waypoint keptn skaffold devspace tilt rundeck rd airbyte dagster "
                "prefect kestra n8n airflow azdevops vsts circle codemagic dvc mlflow wandb comet clearml kfp"
            ),
            (
                r"(?:^|[ :_.-])(?:delete\S*|destroy\S*|rm|remove|uninstall|purge|terminate|safe-shutdown|shutdown|"
                r"restart|safe-restart|quiet-down|wipe-workspace|disable-\w+|clear-queue|reset|drop|nuke|cancel-all|"
                r"wipeout|prune-all|rollback --force|gc)(?=$|[ :_.-])(?!\.\w)|\bset-external-task\b|\bapp (?:delete|"
                r"terminate-op)|^argocd proj delete|^argocd app sync\b.*--prune"
            ),
            _CI,
            r"\b(?:list|lint|validate|get|show|status)\b",
        ),
        Loss(
            "ci",
            "fly",
            (
                r"^fly (?:-t \S+ |--target \S+ )?(?:destroy-pipeline|dp|clear-task-cache|prune-worker|destroy-team|"
                r"abort-build|archive-pipeline|expose-pipeline|land-worker)\b"
            ),
            _CI,
        ),
        Loss(
            "ci",
            "java",
            (
                r"\bjenkins-cli\.jar\b.*\b(?:delete-\w+|safe-shutdown|shutdown|restart|safe-restart|disable-\w+|"
                r"clear-queue|groovy|groovysh|wipe-workspace|offline-node|quiet-down)\b|\bliquibase\S*\.jar .*drop"
            ),
            _CI,
        ),
        Loss(
            "ci",
            "az",
            r"\b(?:pipelines|repos|devops|boards|artifacts)\b.*\b(?:delete|remove|disable|abandon|purge)\b",
            _CI,
        ),
        Loss(
            "ci",
            "jira acli jira-cli linear trello asana notion confluence monday clickup zendesk zcli hub-issue youtrack",
            r"\b(?:delete|del|remove|archive|purge|transition-all|bulk)\b",
            _CI,
            r"\blist\b",
        ),
        Loss(
            "monitoring",
            (
                "dog datadog-ci datadog newrelic nrql sentry-cli grafana-cli grafana grr grafanactl pd opsgenie-cli "
                "opsgenie amtool promtool mimirtool cortextool influx influxd logcli logcli-admin splunk honeycomb "
                "honeymarker lightstep axiom betterstack uptimerobot pingdom checkly statuspage victoropsctl "
                "zabbix_sender zabbix nagios icingacli icinga2 monit prtg telegraf kapacitor chronograf thanos vmctl "
                "signoz elastic-agent wazuh-control agent_control falco osqueryctl cloudprober statuscake "
                "healthchecks kuma"
            ),
            (
                r"(?:^|[ :_./-])(?:delete\S*|destroy|remove|rm|mute\S*|unmonitor|silence (?:add|expire)|closeAlert|"
                r"clean|reset-admin-password|purge|disable\S*|downtime post|acknowledge-all|clear|wipe|drop|uninstall|"
                r"stop|apply)(?=$|[ :_./-])(?!\.\w)|\bsnooze\b|\bmaintenance-windows? create"
            ),
            _EYES,
            r"\b(?:list|show|query|check|get|test|status|tail|junit)\b",
        ),
        Loss(
            "monitoring",
            "aws",
            (
                r"\b(?:cloudwatch|logs|cloudtrail|guardduty|configservice|securityhub|inspector2?|macie2|xray|events|"
                r"scheduler|detective|accessanalyzer|budgets|synthetics|oam) (?:delete|disable|stop|remove|"
                r"put-retention|disassociate|update-trail|deregister|archive)\S*"
            ),
            _EYES,
        ),
        Loss(
            "monitoring",
            "gcloud",
            r"\b(?:logging|monitoring|alpha monitoring)\b.*\b(?:delete|disable|update .*--exclusion|remove)\b",
            _EYES,
        ),
        Loss(
            "monitoring",
            "az",
            r"\bmonitor\b.*\b(?:delete|disable|remove|purge)\b|\bsecurity\b.*\b(?:delete|disable)\b",
            _EYES,
        ),
        Loss(
            "monitoring",
            (
                "auditctl augenrules ausearch aureport auditd fail2ban-client rkhunter aide tripwire clamscan "
                "chkrootkit setenforce"
            ),
            r"^auditctl -(?:D|e ?0|d|W)|^fail2ban-client (?:stop|unban --all|set \S+ (?:unbanip|delignoreip))",
            _EYES,
        ),
        Loss(
            "monitoring",
            "journalctl logrotate dmesg wevtutil log",
            (
                r"--vacuum-\w+|--rotate\b|--flush\b|^dmesg .*(?:-C|--clear|-c\b|--read-clear)|^wevtutil (?:cl|"
                r"clear-log|sl)\b|^log erase|^logrotate\b.* -\w*f"
            ),
            _EYES,
        ),
        Loss(
            "payment",
            "stripe",
            (
                r"^stripe (?:-\S+ )*(?:delete|post)\b|\b(?:delete|cancel|capture|pay|void|finalize|confirm|reverse|"
                r"archive|send|mark_uncollectible|reject|detach|close)\b|\b(?:refunds|payouts|transfers|topups|"
                r"charges|reversals) create\b|\bcreate\b.*--live\b|--live\b.*\bcreate\b|\bupdate\b.*--live"
            ),
            _MONEY,
            r"^stripe (?:logs|listen|trigger|samples|login|config)\b",
        ),
        Loss(
            "payment",
            (
                "paypal braintree square adyen mollie razorpay chargebee recurly paddle klarna plaid wise gocardless "
                "checkout lemonsqueezy quickbooks xero coinbase binance kraken ccxt"
            ),
            (
                r"\b(?:refund\w*|payouts?|cancel|void|charge|transfer\w*|capture|create|delete|send|sell|buy|"
                r"withdraw\w*|order)\b"
            ),
            _MONEY,
            r"\b(?:list|get|show|retrieve)\b",
        ),
        Loss(
            "payment",
            "shopify",
            r"\btheme (?:delete|push|publish)\b|\bapp (?:deploy|release|function .*delete)\b|--force\b|--live\b",
            _MONEY,
        ),
        Loss(
            "payment",
            (
                "cast forge hardhat truffle brownie ape foundry starkli sui aptos near solana spl-token anchor lncli "
                "lightning-cli bitcoin-cli litecoin-cli geth monero-wallet-cli electrum eth ethereal celo-cli flow "
                "algokit goal cardano-cli polkadot-js tezos-client stellar soroban wallet gcli xrpl"
            ),
            (
                r"\b(?:send|publish|transfer|transfer-sol|sendtoaddress|sendmany|sendrawtransaction|dumpprivkey|"
                r"dumpwallet|sendpayment|payinvoice|sendcoins|closechannel|closeallchannels|keysend|pay|withdraw|"
                r"broadcast|payto|--broadcast|deploy|upgrade|program (?:close|deploy|set-upgrade-authority)|burn|mint|"
                r"approve|stake|unlock|account new|close|closewallet|submit|execute|invoke|clawback|"
                r"migrate --network (?!dev\w*|local\w*|hardhat)\S+|run\b.*--network (?:main\w*|live))\b|"
                r"--private-key\b"
            ),
            _MONEY,
            (
                r"^forge (?:build|test|fmt|snapshot|coverage|inspect|install|init|script(?!.*--broadcast))|^(?:sui|"
                r"aptos|anchor|near) (?:move )?(?:build|test|localnet)|^flow (?:test|emulator)|"
                r"^(?:hardhat|truffle|ape|brownie) .*--network[= ](?:local\w*|hardhat|dev\w*|test)\b|"
                r"--rpc-url (?:http://)?(?:localhost|127\.0\.0\.1)"
            ),
        ),
        Loss(
            "payment",
            "twilio sendgrid mailgun vonage plivo messagebird aws-sns",
            r"\b(?:\S*:(?:remove|delete)|messages:create|calls:create|send\w*|phone-numbers:buy\S*|remove|delete)\b",
            "sends messages or gives numbers up",
        ),
        Loss(
            "payment",
            "aws",
            (
                r"\b(?:sns publish|ses send-\S+|sesv2 send-\S+|pinpoint send-\S+|purchase-\S+|accept-\w*-?quote|"
                r"create-savings-plan|marketplace-\S+ \S*agreement\S*)\b"
            ),
            "sends messages or buys something",
        ),
    )
)
