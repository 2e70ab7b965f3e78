"""Rules about message brokers and search engines: queues, topics and indexes that are emptied or removed."""

from __future__ import annotations

from agent_hooks.guards.shell.rules.outside import Loss, losses

_WHY = "removes or empties queues, topics or the messages in them"
_INDEX = "removes or empties an index"
_KAFKA = " ".join(
    f"{name}{end}"
    for name in (
        "kafka-topics",
        "kafka-consumer-groups",
        "kafka-delete-records",
        "kafka-configs",
        "kafka-acls",
        "kafka-streams-application-reset",
        "kafka-reassign-partitions",
        "kafka-share-groups",
        "kafka-storage",
        "kafka-leader-election",
        "kafka-metadata-quorum",
        "zookeeper-shell",
        "kafkactl",
        "kaf",
    )
    for end in ("", ".sh")
)
RULES = losses(
    (
        Loss(
            "broker",
            _KAFKA,
            (
                r"--delete\b|--reset-offsets\b.*--execute|--remove\b|^kafka-delete-records|retention\.\w+=|"
                r"--delete-config|^kafka-streams-application-reset|--execute\b|\bformat\b|\b(?:deleteall|rmr|delete)\b"
            ),
            _WHY,
            r"--verify\b|--describe\b",
        ),
        Loss(
            "broker",
            "rabbitmqctl rabbitmqadmin rabbitmq-queues rabbitmq-upgrade",
            (
                r"\b(?:delete\w*|purge\w*|reset|force_reset|forget_cluster_node|clear_\w+|stop_app|stop|shutdown|"
                r"close_all_connections|set_permissions|add_user|set_user_tags|change_password|import_definitions)\b|"
                r"\bpurge queue\b"
            ),
            _WHY,
        ),
        Loss(
            "broker",
            "nats",
            (
                r"\b(?:stream|str|consumer|con|kv|object|obj|context|account|auth)\b.*\b(?:rm|purge|del|delete|remove|"
                r"rmm|restore|seal|destroy)\b"
            ),
            _WHY,
        ),
        Loss(
            "broker",
            "rpk pulsar-admin bin/pulsar-admin pulsar-perf temporal tctl-temporal solace artemis mqsicommand hookdeck",
            (
                r"\b(?:delete\S*|remove\S*|terminate|trim-prefix|wipe|clear-backlog\S*|unload|purge|reset-cursor|"
                r"skip\S*|decommission)\b"
            ),
            _WHY,
            r"\blist\b",
        ),
        Loss(
            "broker",
            "celery rq dramatiq sidekiqctl faktory bull bullmq",
            r"\b(?:purge|empty|flush|amqp queue\.(?:delete|purge)|control shutdown|multi kill)\b",
            _WHY,
        ),
        Loss(
            "broker",
            "redis-cli valkey-cli keydb-cli",
            (
                r"\b(?:DEL|UNLINK|XTRIM|XDEL|XGROUP DESTROY|LTRIM|SPOP|RENAME|SHUTDOWN|FLUSHALL|FLUSHDB|SWAPDB|"
                r"CLUSTER RESET|CLUSTER FORGET|DEBUG|REPLICAOF|SLAVEOF|MIGRATE|SCRIPT FLUSH|FUNCTION FLUSH)\b|"
                r"\b(?:GETDEL|ZREMRANGE\w+|CONFIG SET|CONFIG RESETSTAT|--cluster (?:del-node|reshard|fix))\b"
            ),
            _WHY,
            r"-h (?:localhost|127\.0\.0\.1)\b.*\bDEL\b|\bCONFIG GET\b",
            whole=True,
        ),
        Loss(
            "broker",
            "aws",
            (
                r"\bsqs (?:purge|delete)-|\bsns (?:delete|unsubscribe)|\bkinesis (?:delete|decrease)|"
                r"\bkafka (?:delete|reboot)"
            ),
            _WHY,
        ),
        Loss("broker", "gcloud", r"\bpubsub\b.*\b(?:delete|seek|detach)\b", _WHY),
        Loss(
            "search-engine",
            (
                "curator_cli curator elasticsearch-reset-password elasticsearch-users elasticsearch-node elasticdump "
                "multielasticdump esctl elastic opensearch-cli"
            ),
            r"\bdelete\S*\b|^elasticsearch-(?:reset-password|users|node) \S|--delete\b|\bclose\b",
            _INDEX,
        ),
        Loss(
            "search-engine",
            (
                "solr algolia meilisearch-cli meili typesense-cli pinecone weaviate qdrant chroma milvus_cli vespa "
                "zinc quickwit"
            ),
            r"\b(?:delete|clear|purge|destroy|drop|remove|reset|deletes?[-_]\w+|config clear)\b",
            _INDEX,
            r"\b(?:list|search|status)\b",
        ),
    )
)
