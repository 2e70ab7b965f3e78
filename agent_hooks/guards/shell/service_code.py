"""Code of any language that uses a service: losses in a cloud or a database, requests, payments, messages.

Such code names the library of the service and the call, so patterns over its text are enough.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from agent_hooks.guards.lazy import LazyPattern, lazy_pattern
from agent_hooks.guards.shell.command import Command


class Call(NamedTuple):
    """A kind of call: the rule that it meets, the library that the code names, and the call itself."""

    rule: str
    library: LazyPattern
    harmful: LazyPattern
    reason: str


_CLOUD = (
    r"\bboto3?\b|aws-?sdk|@aws-sdk|\bAws::|\bAws\\|google\.cloud|@google-cloud|googleapis|\bazure\.|@azure/|digitalocean|"
    r"\bopenstack\b|hcloud|\bkubernetes\b|@kubernetes|client-node|cloudflare|docker\.from_env|DockerClient|dockerode|"
    r"\bsupabase\b|firebase[-_]admin|\bdatabricks\b|\bsnowflake\b|\bminio\b|\bhvac\b"
)
_DATA = (
    r"\b(?:redis|ioredis|pymongo|mongoose|mongodb|MongoClient|psycopg\w*|asyncpg|mysql\w*|MySQLdb|pymysql|sqlalchemy|"
    r"sqlite3|PDO|mysqli|PG|pg|Sequel|ActiveRecord|knex|sequelize|typeorm|prisma|PrismaClient|Elasticsearch|opensearch\w*|"
    r"neo4j|cassandra|clickhouse\w*|duckdb|objects|Repo|DB|db|models?|Eloquent|[A-Z]\w+)\b"
)
_PRINTS_CLOUD = rf"(?s)\A(?=.*\b(?:print|console\.log|puts|echo|write)\b)(?=.*(?:{_CLOUD}))"
_ROWS = (
    (
        "cloud",
        _CLOUD,
        (
            r"(?:\.|->|::|\b)(?:batch_)?(?:delete|terminate|destroy|purge|deregister|begin_delete|prune|"
            r"empty_bucket|schedule_key_deletion|remove_bucket|bulk_delete)(?:_\w+|[A-Z]\w*)?!?(?:\s*\(|"
            r"(?=\s*(?:[;'\"\n]|$)))|\b(?:Delete|Terminate|Deregister|Purge|Empty|ScheduleKeyDeletion)\w*Command\b|['\"]Action['\"]\s*:\s*['\"]DELETE"
        ),
        "removes or replaces resources of the cloud",
    ),
    (
        "access",
        _CLOUD,
        (
            r"\b(?:attach_\w*policy|put_\w*policy|create_access_key|add_user_to_group|create_login_profile|"
            r"set_iam_policy|update_assume_role_policy|create_cluster_role_binding|create_role_assignment|"
            r"(?:Attach\w*Policy|Put\w*Policy|CreateAccessKey|AddUserToGroup)Command)\b"
        ),
        "grants rights",
    ),
    (
        "print-secret",
        _PRINTS_CLOUD,
        (
            r"(?:get_secret_value|access_secret_version|\bget_secret\b|WithDecryption|GetSecretValueCommand|"
            r"read_namespaced_secret|list_namespaced_secret)"
        ),
        "prints a secret, which the model and its records would hold",
    ),
    (
        "sql",
        _DATA,
        (
            r"\b(?:flushall|flushdb|drop_database|dropDatabase|drop_all|drop_collection|delete_all|destroy_all|"
            r"deleteAll|drop_tables|dropAllTables|truncateAll)\b|\bdelete_?[mM]any\(\s*(?:\{\s*\})?\s*\)|(?:\.|->|"
            r"::)truncate\(|\.objects\.(?:all\(\)|filter\([^)]*\))\.delete\(|\bindices\.delete\(|\.drop\(\s*\)|"
            r"\(&:(?:destroy|delete)"
        ),
        "drops or empties tables of a database",
    ),
    (
        "http-delete",
        r"https?://(?!localhost|127\.|0\.0\.0\.0|\[::1)",
        (
            r"(?:\b(?:axios|got|ky|superagent|needle|HTTParty|Faraday|RestClient|Typhoeus|HTTP|Req|"
            r"HTTPoison)\W{0,12}|\)\s*(?:\.|->)|->new->|\$\w+->)(?:delete|del)\b\s*\(?|"
            r"CURLOPT_CUSTOMREQUEST\s*(?:,|=>)\s*['\"]DELETE|HttpDelete\b|->request\(\s*['\"]DELETE"
        ),
        "deletes something by a request",
    ),
    (
        "payment",
        r"(?i:\b(?:stripe|paypal|braintree|adyen|square)\b)",
        (
            r"(?i:\b(?:refunds?|payouts?|transfers?|charges?|payment_?intents?)\b\W{0,3}(?:create|capture|confirm|"
            r"cancel)\b)|(?i:\bsubscriptions?\b\W{0,3}(?:cancel|del|delete)\b)"
        ),
        "moves money",
    ),
    (
        "ci",
        r"\b(?:Github|Octokit|octokit|gitlab|Gitlab|jenkins|Jenkins)\b",
        (r"\.delete\w*\(|\bdelete_(?:repo|job|project|ref)\w*|\.repos\.delete\b"),
        "deletes something that others use",
    ),
    (
        "send-out",
        r"\b(?:smtplib|nodemailer|Net::SMTP|ActionMailer|PHPMailer|Net::SMTP|aiosmtplib|Email::Sender)\b",
        (r"\b(?:sendmail|send_message|sendMail|deliver\w*|->send)\b"),
        "sends a message, which cannot be taken back",
    ),
)
_CALLS = tuple(
    Call(rule, lazy_pattern(library), lazy_pattern(harmful, re.DOTALL), reason)
    for rule, library, harmful, reason in _ROWS
)
# A quick test: most code holds none of these words.
_ANY = lazy_pattern(
    r"(?i)delete|del\b|terminate|destroy|purge|deregister|prune|drop|flush|truncate|policy|access_?key|secret|decrypt|refund|"
    r"payout|transfer|charge|payment|subscription|mail|send_message|deliver|empty|add_?user|create_\w*profile|schedule_key|"
    r"role_?(?:binding|assignment)|remove_bucket"
)
# Databases that only this code uses.
_OWN_DATA = lazy_pattern(
    r":memory:|sqlite(?:\+\w+)?://['\"]|sqlite:///?(?:/tmp/|\w*test)|['\"](?:/tmp/|test)[\w./-]*\.(?:db|sqlite3?)['\"]"
)


def uses_own_data(source: str) -> bool:
    """Return whether code works on a database that only it uses: in memory, in a temporary directory, for tests."""
    return bool(_OWN_DATA.search(source))


def judge_services(command: Command, source: str, *, on_test_data: bool) -> None:
    """Judge the calls of services in the code of any language; `on_test_data`: its databases hold test data."""
    if not _ANY.search(source):
        return
    for call in _CALLS:
        if call.rule == "sql" and (on_test_data or _OWN_DATA.search(source)):
            continue
        if call.library.search(source) and call.harmful.search(source):
            command.report(call.rule, call.reason)
