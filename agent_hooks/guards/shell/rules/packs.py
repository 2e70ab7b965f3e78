"""The extended packs: cloud, kubernetes, infrastructure as code, SQL, services.

Their rules hold whether the settings name the pack or not; its name is the id of the findings.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule
from agent_hooks.guards.shell.rules.outside import LOCAL_CLUSTER, names_test, on_test_data


class PackRule(NamedTuple):
    """One rule of a pack.

    `programs`: their names, separated by blanks; `harmful` and `excuse`: patterns that are searched in the command's
    words, joined by blanks.  A command that matches `harmful` and not `excuse` is stopped.
    """

    pack: str
    programs: str
    harmful: str
    reason: str
    excuse: str = r"--dry-?run(=(client|server|true))?\b|--help\b|\b--dryrun\b"


_PACK_RULES = (
    PackRule(
        "kubernetes",
        "kubectl k oc",
        (
            r"\bdelete\b.*(\b(ns|namespaces?|nodes?|pv|pvc|crd|clusterrole\w*|deploy\w*|statefulset|"
            r"sts|all)\b|--all\b)"
        ),
        "deletes resources of a cluster",
    ),
    PackRule(
        "kubernetes",
        "kubectl k oc",
        r"\b(drain|replace --force|delete (-f|--filename|-k)\b)",
        "empties a node, or deletes resources that files name",
    ),
    PackRule("kubernetes", "helm", r"\b(uninstall|delete)\b", "removes a release"),
    PackRule(
        "iac",
        "terraform tofu terragrunt",
        (
            r"\b(destroy|apply .*-destroy|state rm|force-unlock|workspace delete)\b|"
            r"\bapply\b.*-auto-approve"
        ),
        "destroys infrastructure",
        r"^\S+ (?:-\S+ )*(?:plan|show|output|graph|validate|init|fmt)\b",
    ),
    PackRule(
        "iac",
        "pulumi cdk cdktf serverless sls sam",
        r"\b(destroy|remove|delete|rm)\b",
        "destroys infrastructure",
        r"--preview-only",
    ),
    PackRule(
        "iac",
        "ansible ansible-playbook",
        r"state=(?:absent|stopped)\b",
        "removes or stops files, packages or services from hosts",
        r"--check|^ansible localhost\b|-c local\b",
    ),
    PackRule("sql", "dropdb dropuser mysqladmin", r"^dropdb|^dropuser|\bdrop\b", "drops a database"),
    PackRule(
        "sql",
        "rails rake bin/rails php artisan",
        r"\bdb:(drop|reset|purge|schema:load)\b|\bmigrate:(fresh|reset)\b|\bdb:wipe\b",
        "drops a database",
    ),
    PackRule(
        "sql",
        "prisma sequelize knex typeorm alembic",
        r"\b(migrate reset|db push --force-reset|db:drop|schema:drop|downgrade base)\b",
        "drops a database",
    ),
    PackRule(
        "sql",
        "python python3 manage.py django-admin",
        r"\b(flush|reset_db|sqlflush)\b.*--no-?input|manage\.py flush",
        "empties a database",
    ),
    PackRule(
        "cloud",
        "aws",
        (
            r"\b(terminate-|delete-|remove-|deregister-|s3 (rb|rm)\b|s3 sync .*--delete|purge-queue|"
            r"schedule-key-deletion)"
        ),
        "deletes resources of the cloud",
    ),
    PackRule(
        "cloud",
        "gcloud gsutil az doctl flyctl fly heroku vercel netlify wrangler firebase linode-cli hcloud oci ibmcloud",
        r"\b(delete|destroy|rm|rb|remove|purge|apps:destroy|pg:reset|pg:restore|pg:copy|undelete|sites:delete)\b",
        "deletes resources of the cloud",
    ),
    PackRule(
        "cloud",
        "gh",
        (
            r"\b(repo|release|secret|variable|run|cache|codespace|gist|label|ssh-key) delete\b|"
            r"\bapi\b.*-X\s*DELETE|repo archive|repo edit .*visibility"
        ),
        "deletes resources that others rely on",
    ),
    PackRule("cloud", "glab", r"\b(repo|release) delete\b", "deletes resources that others rely on"),
    PackRule(
        "cloud",
        "npm pnpm yarn cargo gem twine",
        r"\b(unpublish|yank|deprecate)\b|\bowner (rm|--remove)",
        "withdraws a published package",
    ),
    PackRule(
        "services",
        "shutdown reboot halt poweroff init telinit",
        r"^(shutdown|reboot|halt|poweroff)|^(tel)?init [06]",
        "stops the machine",
        r"--help\b|shutdown -c\b",
    ),
    PackRule(
        "services",
        "systemctl service rc-service launchctl",
        r"\b(poweroff|reboot|halt|suspend|hibernate|rescue|emergency|kexec|isolate)\b|"
        r"\b(stop|disable|mask|kill)\b.*\b(sshd?|networking|NetworkManager|systemd-\w+|docker|"
        r"firewalld|ufw|dbus|cron|crond)\b|\b(sshd?|networking|docker) stop\b",
        "stops the machine or cuts it off",
    ),
    PackRule("services", "kill", r"\s(-1|1)\s*$|\s-1\b.*-1", "stops all processes"),
    PackRule(
        "services",
        "killall pkill",
        r"\s(-9|-KILL)?\s*(-u\s+root|sshd|systemd|init|dockerd)\b|pkill (-9 )?['\"]?\.['\"*]?$",
        "stops services that the machine needs",
    ),
    PackRule("services", "crontab", r"\s-r\b", "removes all scheduled jobs"),
    PackRule(
        "services",
        "iptables ip6tables nft ufw firewall-cmd pfctl",
        r"(^| )(-F|--flush|-X|flush ruleset|disable|reset|--panic-on|-P (INPUT|OUTPUT) DROP)\b",
        "opens the firewall or cuts the machine off",
        r" -L\b",
    ),
    PackRule(
        "services",
        "ip ifconfig nmcli",
        r"\b(link set \S+ down|link delete|down$|networking off|radio all off)\b",
        "cuts the machine off",
    ),
    PackRule(
        "services",
        "userdel groupdel deluser usermod passwd",
        r"^(userdel|groupdel|deluser)|-L\b|--lock\b|passwd (-d|-l)",
        "removes or locks an account",
    ),
    PackRule(
        "services",
        "swapoff sysctl modprobe rmmod",
        r"^swapoff .*-a\b|-w kernel\.|^rmmod|modprobe -r",
        "changes the kernel",
    ),
)


def _rule(row: PackRule) -> Rule:
    harmful, excuse = lazy_pattern(row.harmful, re.IGNORECASE), lazy_pattern(row.excuse)

    def rule(command: Command) -> None:
        text = " ".join([command.name, *command.argv[1:]])
        if not harmful.search(text) or excuse.search(text):
            return
        if row.pack == "sql" and (on_test_data(command) or (command.name == "dropdb" and names_test(command.argv[-1]))):
            return
        if row.pack != "kubernetes" or not re.search(LOCAL_CLUSTER, text):
            command.report(row.pack, row.reason)

    return rule


RULES: dict[str, tuple[Rule, ...]] = {}
for _row in _PACK_RULES:
    for _program in _row.programs.split():
        RULES[_program] = (*RULES.get(_program, ()), _rule(_row))
