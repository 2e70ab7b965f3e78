"""The rows of git and of other programs for version control.

A repository keeps its own files in `.git`; that a verb changes those is no effect of its own.
"""

TABLE = r"""
git : -C,--work-tree=/ -c,--config-env,--exec-path,--namespace,--super-prefix,--list-cmds,--git-dir=_ @verbs @early
 @opaque
git status, git log, git rev-parse, git rev-list, git describe, git shortlog, git reflog, git ls-files, git ls-tree,
 git merge-base, git name-rev, git cat-file, git show-ref, git for-each-ref, git symbolic-ref, git var, git version,
 git help, git count-objects, git fsck, git check-ignore, git check-attr, git cherry, git whatchanged, git blame, git
 annotate, git verify-commit, git verify-tag, git show-branch, git range-diff, git diff-tree, git bundle, git notes,
 git pack-refs, git maintenance, git repack, git commit-graph, git multi-pack-index, git verify-pack,
 git mktree, git write-tree, git commit-tree, git interpret-trailers, git stripspace, git column, git fmt-merge-msg,
 git mailinfo, git request-pull, git replace, git rerere, git bugreport, git diagnose, git update-server-info, git
 --version, git --help : --output=w _*
git hash-object : -t,--path=_ -w:~ur u*
git reflog expire, git reflog delete : -n,--dry-run:! @lose=reflog _*
git bundle create : w _*
git show, git diff, git diff-index, git diff-files : -O,-S,-G,--output-indicator-new=_ --output=w --no-index:r*
 @do=shown
git grep : -e,-f,-A,-B,-C,-m,--max-depth,--threads=_ -O,--open-files-in-pager=_:@opaque @r=./ _*
git add, git stage, git update-index : --chmod,--cacheinfo,--pathspec-from-file=_ r*
git commit, git tag : -m,-C,-c,-u,-t,--message,--author,--date,--fixup,--squash,--reuse-message,--cleanup,--trailer=_
 -F,--file,--template=q _*
git branch : -u,--set-upstream-to,--contains,--no-contains,--merged,--no-merged,--sort,--format,--points-at=_
 -D,-M,-C:@lose=commits _*
git remote : _*
git remote update : @in _*
git config : -f,--file=> --type,--default,--value,--comment=_ @do=config
git init : -b,--initial-branch,--object-format,--shared=_ --separate-git-dir=W --template=R W*=.
git clone :
 -b,-o,-c,-j,--branch,--origin,--config,--depth,--jobs,--filter,--shallow-since,--shallow-exclude,--server-option=_
 -u,--upload-pack=_:@do=filter --separate-git-dir=W --reference,--template=R @do=clone
git fetch, git ls-remote : -o,-j,--depth,--deepen,--jobs,--filter,--refmap,--server-option,--shallow-since,--sort=_
 --upload-pack,--exec=_:@do=filter @do=fetch
git pull : -o,-j,-s,-X,--depth,--deepen,--jobs,--filter,--strategy,--strategy-option,--server-option=_ -n,--dry-run:!
 --upload-pack=_:@do=filter @w=./ @do=fetch
git push : -o,--push-option,--repo=_ --receive-pack,--exec=_:@do=filter -n,--dry-run:!
 -f,--force,--mirror,--prune:@lose=published-history -d,--delete:@lose=published-branches @do=push
git send-pack, git send-email, git http-push, git p4, git svn dcommit, git lfs push, git imap-send : @out _*
git svn, git archive --remote, git lfs pull, git lfs fetch : @in @w=./ _*
git lfs : @verbs @opaque
git checkout : -b,-B,--orphan,--conflict,--pathspec-from-file=_ @do=checkout
git switch : -c,-C,--orphan,--create,--force-create,--conflict=_
 -f,--force,--discard-changes:@lose=uncommitted-changes @do=switch
git restore : -s,-U,--source,--conflict,--unified,--pathspec-from-file=_ -S,--staged:^ @do=restore
git reset : --pathspec-from-file=_ --hard,--merge:@w=./&@lose=uncommitted-changes --keep:@w=./ _*
git clean : -e,--exclude=_ -n,--dry-run:! @do=clean
git stash : -m,--message,--pathspec-from-file=_ @do=stash
git stash list, git stash show, git stash create, git stash store : _*
git stash drop, git stash clear : @lose=stashes _*
git stash pop, git stash apply, git stash branch : @w=./ _*
git merge, git rebase, git cherry-pick, git revert, git read-tree, git checkout-index, git sparse-checkout, git
 bisect, git submodule, git filter-branch, git filter-repo, git subtree, git history, git replay :
 -m,-F,-s,-X,-S,--onto,--message,--strategy,--strategy-option,--file,--mainline,--prefix=_ -x,--exec=_:@do=filter
 @w=./ _*
git rebase : -s,-X,-C,-S,--onto,--strategy,--strategy-option,--whitespace,--keep-base=_ -x,--exec=_:@do=filter @w=./
 _*
git merge-tree, git merge-file -p, git merge-base : _*
git merge-file : -L=_ -p,--stdout:r* e r r
git submodule update, git submodule add, git subtree pull, git subtree add : -b,--branch,--depth,--name,--prefix,-P=_
 @in @w=./ _*
git submodule status, git submodule summary, git bisect log, git bisect view, git sparse-checkout list, git subtree
 split : _*
git submodule foreach, git bisect run : @w=./ _*
git subtree push : @out _*
git apply : -p,-C,--exclude,--include,--whitespace=_ --directory=/ --check,--stat,--numstat,--summary,--cached:! q*
 @do=patch
git am : -p,-C,--exclude,--include,--whitespace,--patch-format,-S=_ --directory=/
 --abort,--quit:@lose=patches-in-progress q* @w=./
git mv : -n,--dry-run:! m* t
git rm : @do=pathspecs --pathspec-from-file=_ -n,--dry-run:! -r:D* --cached:_* -f,--force:@lose=uncommitted-changes d*
git worktree : _*
git worktree add : -b,-B,--reason,--orphan=_ W _*
git worktree remove : -f,--force:@lose=uncommitted-changes D
git worktree move : m t
git worktree list, git worktree prune, git worktree lock, git worktree unlock : --reason,--expire=_ _*
git archive : -o,--output=w --format,--prefix=_ --add-file=q --remote=h --exec=_:@do=filter _*
git format-patch : -o,--output-directory=W
 -v,--subject-prefix,--cover-from-description,--base,--start-number,--suffix,--to,--cc=_ --output=w --stdout:^
 @do=series
git difftool, git mergetool : -t,-x,--tool,--extcmd=_ @opaque @w=./ _*
git gc, git prune : -n,--dry-run:! --prune=now,--prune=all:@lose=unreachable-commits _*
git prune : -n,--dry-run:! --expire=_ @lose=unreachable-commits _*
git update-ref : -m=_ -d:@lose=commits _*
git unpack-file : @w=./ _
git unpack-objects, git index-pack : _*
git daemon, git http-backend, git instaweb : @out _*
git credential : @opaque
hg, svn, jj, bzr, fossil, sl : -R,--repository,--cwd=/ @verbs @opaque
hg status, hg log, hg diff, hg annotate, hg id, hg summary, svn status, svn log, svn diff, svn info, svn blame, jj
 log, jj status, jj diff, jj show, jj op : _*
hg update, hg revert, hg merge, hg pull, hg backout, svn revert, svn update, svn switch, svn merge, jj new, jj edit,
 jj restore, jj abandon, jj rebase, jj undo, jj squash : @w=./ _*
hg push, svn commit, svn ci, jj git push : @out _*
hg clone, svn checkout, svn co, svn export, jj git clone : h W? @in
pre-commit : @verbs @opaque
gh : -R,--repo=_ --hostname=_ @verbs @global @out=api.github.com
gh * list, gh * view, gh * status, gh status, gh search *, gh * diff, gh * checks, gh run watch, gh auth status, gh
 browse, gh api :
 -q,-t,-L,-S,-s,-l,-a,-A,-B,-H,--json,--jq,--template,--limit,--search,--state,--label,--assignee,--author,--base,--head=_
 -X,--method,-f,-F,--field,--raw-field,--input=@:@out=api.github.com @in=api.github.com _*
gh pr checkout : @in=github.com @w=./ _*
gh repo clone, gh gist clone : @in=github.com _ W? @do=clone
gh release download, gh run download : -D,--dir=W -O,--output=w -p,-n,--pattern,--name,--archive=_ @in=github.com
 @w=./ _*
gh release create, gh release upload, gh gist create : -F,--notes-file=r
 -t,-n,-d,--title,--notes,--target,--desc,--filename=_ @out=github.com r*
gh pr create, gh pr edit, gh pr comment, gh issue create, gh issue edit, gh issue comment, gh pr review :
 -F,--body-file=r -t,-b,-B,-H,-l,-a,-r,-m,-p,--title,--body,--base,--head,--label,--assignee,--reviewer=_
 @out=api.github.com _*
gh * delete, gh * close, gh secret delete, gh variable delete : @out=api.github.com @lose=remote-resources _*
gh auth token, gh auth login, gh auth logout, gh config *, gh alias *, gh extension * : @opaque _*
glab, hub, tea : @verbs @out
"""
