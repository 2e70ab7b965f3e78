"""Programs that read the files they name, and those whose words are texts for people."""

from __future__ import annotations

# Programs that read the files they name, or only their names and rights.
_READERS_TEXT = (
    "ls ll la tree stat file du df readlink realpath basename dirname test find gfind fd fdfind locate eza exa lsd "
    "cat tac head tail less more bat batcat nl od xxd hexdump hd strings base64 base32 uuencode view cut sort uniq "
    "paste fold fmt diff cmp colordiff delta difft comm join column pr expand unexpand rev look wc md5sum sha1sum "
    "sha256sum sha512sum shasum cksum b3sum yq jq ccat glow most sdiff jless pbcopy xclip pg grep egrep fgrep zgrep "
    "rg ag ack awk gawk mawk pcregrep sed tr tee split iconv csplit echo printf mkdir cd pushd man apropos which "
    "whereis whatis type code subl open pytest py.test mypy pyright basedpyright dmypy flake8 pylint pyflakes bandit "
    "vulture radon shellcheck agent-hooks git g gh hub make gmake ninja tox nox pre-commit coverage cloc tokei scc "
    "ctags watch entr hyperfine xargs gxargs parallel ssh curl wget http https xh fetch docker podman kubectl su "
    "runuser script expect tmux screen rm rimraf del-cli srm grm unlink rmdir truncate shred wipe cp mv install scp "
    "gcp pax cpio ditto rsync ln dd patch tar bsdtar zip 7z 7za 7zz unzip rar unrar ar gzip gunzip bzip2 xz unxz zstd "
    "lz4 pigz chmod chown chgrp claude codex gemini qwen copilot opencode pi openclaw kill pkill killall pgrep fuser "
    "lsof inotifywait fswatch dpkg rpm security gpg gpg2 openssl strace ltrace getfacl getfattr lsattr export declare "
    "local readonly typeset alias pip pip3 uv pipx uvx poetry npx npm pnpm yarn bun mount findmnt vim vi nvim ed ex "
    "emacs nano"
)
READERS = frozenset(_READERS_TEXT.split())
# Options whose value is a text for people, and programs whose words are such texts.
TEXT_OPTIONS = {"-m", "--message", "--title", "-t", "-b", "--body", "--description", "--notes", "--testNamePattern"}
_TEXT_PROGRAMS_LINE = "jj hg sl svn glab tea sd notify-send terminal-notifier logger wall say figlet cowsay jira bd"
TEXT_PROGRAMS = frozenset(_TEXT_PROGRAMS_LINE.split())
# Programs for which every word and stdin is data: they run none of it, and other rules judge the files that they write.
_DATA_TEXT = (
    "ls ll la tree test [ stat file du df readlink realpath basename dirname cat tac head tail more bat batcat nl od xxd "
    "hexdump hd strings base64 base32 cut sort uniq paste fold fmt diff cmp colordiff delta difft comm join column pr "
    "expand unexpand rev look wc md5sum sha1sum sha256sum sha512sum shasum cksum b3sum yq jq tr tee iconv csplit grep "
    "egrep fgrep zgrep rg ag ack pcregrep find fd echo printf mkdir cd pushd popd pwd which whereis whatis type man true "
    "false : sleep kill pkill killall pgrep lsof ps cp mv install ln rm rmdir unlink touch chmod chown chgrp truncate "
    "shred dd gzip gunzip bzip2 xz zstd unzip cloc tokei scc shellcheck less code subl open pbcopy xclip wl-copy ssh "
    "kubectl oc http https xh agent-hooks claude codex gemini qwen copilot opencode pi openclaw return exit shift break "
    "continue set "
    "export declare typeset local readonly read let unset mapfile readarray getopts eval trap source . alias shopt "
    "unalias hash jobs wait fg bg umask ulimit history"
)
DATA = frozenset(_DATA_TEXT.split())
# Programs that take messages, also on stdin.
_MESSENGERS_TEXT = "git g gh hub glab tea hg svn jj jest vitest mocha npx npm pnpm yarn pytest mail mailx sendmail"
MESSENGERS = frozenset(_MESSENGERS_TEXT.split())
