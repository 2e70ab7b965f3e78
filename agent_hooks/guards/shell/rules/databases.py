"""Rules about databases: what a statement, a client or a migration tool drops or empties."""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule
from agent_hooks.guards.shell.rules.outside import Loss, losses, names_test
from agent_hooks.guards.shell.sql import CLIENTS_LINE, TEST_DATA

_WHY = "drops or empties data"
# A deletion without a condition, or with one that always holds.
_ALL = r"(?:\s*(?:;|$|['\"]|\\)|\s+where\s+(?:1\b|true\b|1\s*=\s*1|id\s*(?:>|>=|!=|is not)\s*))"
SQL = (
    r"\bdrop\s+(?:table|database|schema|index|view|materialized\s+view|user|role|keyspace|type|function|"
    r"procedure|trigger|"
    r"sequence|collection|tablespace|extension|column|partition|stage|warehouse|stream|constraint|owned)\b"
    r"|\btruncate\b(?!\s*\()|\balter\s+table\s+\S+\s+(?:drop|delete)\b"
    rf"|\bdelete\s+from\s+[\w.\"`'\[\]]+{_ALL}|\bupdate\s+\S+\s+set\s+(?!.*\bwhere\b)|"
    rf"\bupdate\s+\S+\s+set\b.*\bwhere\s+(?:1\s*=\s*1|true)\b"
    r"|\bdetach\s+delete\b|\bpurge\s+(?:table|binary)|\breset\s+(?:master|slave)\b|\bxp_cmdshell\b|"
    r"\bcopy\s+.*\b(?:from|to)\s+program\b"
    r"|\bpg_terminate_backend|\binto\s+(?:out|dump)file\b|\bpg_read_file|\blo_export|\bshutdown\b(?!\s*=)|"
    r"\bflushall\b|\bflushdb\b|\bcreate\s+or\s+replace\s+(?:transient\s+)?(?:database|schema)\b|\bretain\s+0\s+hours\b"
)
_MONGO = (
    r"dropDatabase|\.drop(?:Index(?:es)?|User|Role|Collection)?\(|deleteMany\(\s*\{?\s*\}?\s*\)|"
    r"remove\(\s*\{\s*\}|\.deleteMany\(\s*\{\s*\}|\.remove\(\s*\)|updateMany\(\s*\{\s*\}|shutdownServer|"
    r"renameCollection|replSetReconfig|fsync"
)
_MIGRATE = (
    r"\b(?:db:(?:drop|reset|purge|wipe|setup|schema:load|seed:replant|structure:load|truncate_all|"
    r"rollback STEP=\d{2,})(?::\w+)?|migrate:(?:fresh|reset|refresh|rollback --step=\d{2,})|db:wipe|"
    r"schema:(?:drop|dump --prune)|migrations:(?:rollup|version .*--delete)|doctrine:(?:database:drop|"
    r"schema:drop|mongodb:schema:drop|fixtures:load)|ecto\.(?:drop|reset|rollback --all)|queue:(?:flush|"
    r"clear)|telescope:clear|cache:clear --all|down --secret)\b"
)
RULES_OF_TABLE = losses(
    (
        Loss("sql", CLIENTS_LINE, SQL, _WHY, whole=True, spare=TEST_DATA),
        Loss("sql", "mongosh mongo mongorestore mongodump mongoimport", _MONGO + r"|--drop\b", _WHY, whole=True),
        Loss(
            "sql",
            (
                "dropdb dropuser pg_dropcluster pg_resetwal mysqladmin pg_restore pg_ctl pg_ctlcluster initdb "
                "pg_rewind pg_archivecleanup mysql_secure_installation mysql_upgrade"
            ),
            (
                r"^(?:dropdb|dropuser|pg_dropcluster|pg_resetwal|pg_rewind|pg_archivecleanup|"
                r"mysql_secure_installation) \S|^mysqladmin\b.*\b(?:drop|shutdown|flush-\w+|kill|password)\b|"
                r"^pg_restore\b.*(?:--clean| -\w*c\w*\b)|^pg_ctl\b.*\b(?:stop|kill)\b.*immediate"
            ),
            _WHY,
            r"^dropdb --help|^pg_restore\b.* (?:-l|--list|-f)\b|^dropdb (?:.* )?(?:\w+_)?tests?(?:_?\d+|_\w+)?$",
        ),
        Loss("sql", "redis-cli valkey-cli keydb-cli iredis", r"\b(?:flushall|flushdb)\b", _WHY, whole=True),
        Loss(
            "sql",
            "rails rake bin/rails php artisan mix bin/console console symfony thor sail docker-php",
            _MIGRATE,
            _WHY,
        ),
        Loss(
            "sql",
            (
                "prisma sequelize sequelize-cli knex typeorm mikro-orm drizzle-kit objection node-pg-migrate "
                "db-migrate umzug"
            ),
            (
                r"\b(?:migrate reset|db push\b.*(?:--force-reset|--accept-data-loss)|db:drop|schema:drop|"
                r"db:migrate:undo:all|migration:revert --all|migrate:rollback\b.*(?:--all|-a)\b|migrate:down .*--all|"
                r"schema:fresh|database:drop|migration:(?:fresh|down)|\bdrop\b|reset|db execute)\b"
            ),
            _WHY,
            r"\bprisma migrate dev\b",
        ),
        Loss("sql", "dotnet dotnet-ef", r"^\S+ (?:ef )?database drop\b", _WHY),
        Loss(
            "sql",
            "alembic flask",
            r"\bdowngrade (?:base|\S*\^?0+\b)|\bdb downgrade base|\bdrop[-_](?:all|db)\b|\breset[-_]db\b",
            _WHY,
        ),
        Loss(
            "sql",
            "django-admin manage.py airflow superset edgedb",
            r"\b(?:flush|reset_db|sqlflush|migrate \w+ zero|db reset|db clean|drop)\b",
            _WHY,
        ),
        Loss(
            "sql",
            (
                "flyway liquibase diesel sqlx goose dbmate migrate atlas hasura skeema sqitch refinery sea-orm-cli "
                "ent pgroll bytebase schemahero soda"
            ),
            (
                r"\b(?:clean|drop-all|dropAll|rollback-count\S*|rollback-to-date|rollback\b.*\d{2,}|database (?:reset|"
                r"drop)|reset|drop|down-to 0|down -all|down --all|schema clean|metadata (?:clear|drop|reset)|"
                r"revert --all|fresh|refresh|force|undo)\b|^migrate\b.* down(?: -all)?$"
            ),
            _WHY,
            r"\bmigrate\b.* force \d",
        ),
        Loss(
            "sql",
            (
                "supabase pscale neonctl turso firebase xata planetscale convex appwrite nhost fauna couchdb-cli "
                "tigris cloudflared-db upstash aiven avn atlascli mongocli"
            ),
            (
                r"\b(?:db reset|db (?:destroy|delete)|(?:projects?|database|branch|branches|db|databases|cluster|"
                r"clusters|service|group|collection|instances?|tables?) (?:delete|destroy|reset|rm|terminate|wipe|"
                r"drop)|firestore:delete|database:(?:remove|set|update)|functions:delete|hosting:disable|auth:import|"
                r"data remove|deployment delete|storage rm)\b|\bdelete db\b|^couchdb-cli delete"
            ),
            _WHY,
            # The database of this machine.
            r"^supabase db reset(?!.*(?:--linked|--db-url))",
        ),
        Loss("sql", "bq", r"^bq (?:-\S+ )*rm\b", _WHY),
        Loss(
            "sql",
            "aws",
            (
                r"\bdynamodb (?:delete|batch-write)\b|\bdynamodb delete-|\bdynamodb update-table|"
                r"\brds-data execute-statement .*\b(?:drop|delete|truncate)\b|\bredshift(?:-data)? (?:delete|"
                r"execute-statement)|\bdocdb delete|\belasticache (?:delete|flush)|\btimestream-write delete"
            ),
            _WHY,
            whole=True,
        ),
    )
)


_OWN = lazy_pattern(r":memory:|(?:^|\s)(?:/tmp|/var/tmp|\$TMPDIR)/\S+")  # only compared


def _spared(rule: Rule) -> Rule:
    """Return a rule that passes over a database in memory, in a temporary directory, or with test data."""

    def judged(command: Command) -> None:
        files = [word for word in command.argv[1:] if not word.startswith("-") and " " not in word]
        directories = command.interpreter.directories
        if files and (files[0] == ":memory:" or names_test(files[0]) or directories.in_temp(command.path(files[0]))):
            return
        rule(command)

    return judged


def _names_no_statement(rule: Rule) -> Rule:
    """Return a rule for clients that does not search the statements which only print a text."""

    def judged(command: Command) -> None:
        if re.match(r"\s*select\s+'[^']*'\s*;?\s*$", str(command.argv[-1]), re.IGNORECASE):
            return
        rule(command)

    return judged


def files_of_statements(command: Command) -> None:
    """`mysql app < drop_all.sql` runs a file whose name tells what it does."""
    names = [*command.argv[1:], command.stdin.file]
    if any(
        re.search(r"(?:^|[/_.-])(?:drop|truncate|wipe|destroy|purge|nuke|reset)[\w.-]*\.sql$", name) for name in names
    ):
        command.report("sql", _WHY)


RULES: dict[str, tuple[Rule, ...]] = {
    name: (
        tuple(map(_spared, rules))
        if name in ("sqlite", "sqlite3", "duckdb", "litecli")
        else tuple(map(_names_no_statement, rules))
    )
    for name, rules in RULES_OF_TABLE.items()
}
for _name in ("psql", "mysql", "mariadb", "sqlcmd", "sqlplus"):
    RULES[_name] = (*RULES[_name], files_of_statements)
