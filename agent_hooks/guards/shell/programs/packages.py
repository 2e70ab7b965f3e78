"""The rows of package managers.

A package manager keeps its own lock file and the project's list of packages; a change of those is no effect of its own.
Packages may run code when they are installed.
"""

TABLE = r"""
pip-compile : -o,--output-file=w -c,-e,-f,-i,-p,--extra,--index-url=_ @in @w=requirements*.txt r*
npm, pnpm, yarn, bun : --prefix,--cwd,--dir,-C=/ -w,-F,--workspace,--filter,--registry,--loglevel,--tag,--cache=_
 @verbs @global @opaque
npm install, npm i, npm add, npm ci, npm update, npm up, npm upgrade, npm install-test, npm dedupe, npm rebuild, npm
 audit fix : -g,--global:^ --dry-run:! i* @install @in=registry.npmjs.org @w=node_modules/ @opaque
pnpm install, pnpm i, pnpm add, pnpm update, pnpm up, pnpm import, pnpm fetch, pnpm rebuild, pnpm dedupe :
 -g,--global:^ i* @install @in=registry.npmjs.org @w=node_modules/ @opaque
yarn, yarn install, yarn add, yarn up, yarn upgrade, yarn global add : i* @install @in=registry.yarnpkg.com
 @w=node_modules/ @opaque
bun install, bun i, bun add, bun update : -g,--global:^ i* @install @in=registry.npmjs.org @w=node_modules/ @opaque
npm uninstall, npm remove, npm rm, npm r, npm un, npm prune, pnpm remove, pnpm rm, pnpm uninstall, pnpm prune, yarn
 remove, bun remove : -g,--global:^ @w=node_modules/ @opaque _*
npm test, npm t, npm run, npm run-script, npm start, npm stop, npm restart, pnpm test, pnpm run, pnpm start, yarn run,
 yarn test, yarn start, yarn build, bun run, bun test, npm exec, pnpm exec, pnpm dlx, yarn dlx, yarn exec, bun x, npm
 x, npm init, npm create, pnpm create, yarn create, bun create, npm link, pnpm link, yarn link : @opaque _*
npm ls, npm list, npm ll, npm la, npm root, npm prefix, npm bin, npm help, npm version --help, npm explain, npm why,
 npm config, npm get, npm query, npm completion, npm fund, npm pkg get, npm doctor, npm cache ls, npm -v, npm
 --version, pnpm list, pnpm ls, pnpm why, pnpm root, pnpm store, pnpm licenses, yarn list, yarn why, yarn info, yarn
 config, yarn workspaces, yarn --version, bun pm, bun --version : _*
npm view, npm info, npm show, npm search, npm outdated, npm audit, npm ping, npm whoami, npm owner ls, pnpm outdated,
 pnpm audit, yarn outdated, yarn npm audit, bun outdated : @in=registry.npmjs.org _*
npm pkg set, npm pkg delete, npm pkg fix, npm set-script : @e=package.json _*
npm config set, npm config delete, npm set, npm login, npm adduser, npm logout : @e=~/.npmrc _*
npm version, pnpm version, yarn version : @e=package.json @opaque _*
npm pack, pnpm pack, yarn pack : --dry-run:! --pack-destination=W @w=*.tgz @opaque R?
npm publish, npm pub, npm publ, npm publi, npm publis, pnpm publish, yarn publish, yarn npm publish, bun publish :
 --dry-run:! --otp,--access=_
 @out=registry.npmjs.org @opaque R*=.
npm unpublish, npm unp, npm unpu, npm unpub, npm unpubl, npm unpubli, npm unpublis, npm deprecate, npm depr, npm depre,
 npm deprec, npm depreca, npm deprecat, npm dist-tag, npm owner, npm access, npm team, npm token, npm hook :
 @out=registry.npmjs.org @lose=published-packages _*
npm cache clean, npm cache add, pnpm store prune, yarn cache clean, bun pm cache : @opaque _*
npx, bunx, pnpx : -p,-c,--package,--call=_ @early s*
nvm, fnm, volta, asdf, mise, pyenv, rbenv, rustup, sdk, corepack, n, proto : @verbs @opaque
nvm ls, nvm list, nvm current, nvm which, asdf current, asdf list, mise ls, mise current, pyenv versions, pyenv
 version, rbenv versions, rustup show, rustup toolchain list, rustup which : _*
nvm install, fnm install, volta install, asdf install, mise install, pyenv install, rbenv install, rustup update,
 rustup install, rustup component add, rustup target add, rustup toolchain install, sdk install, corepack prepare :
 @in @opaque i*
pip, pipenv, pipx, uv, poetry, pdm, rye, hatch, conda, mamba, micromamba, pixi : --directory,--project,-C=/
 --index-url,--python,--cache-dir,--proxy,--timeout,--log,-p=_ @verbs @global @opaque
pip install, uv pip install, pipx install, pipx inject, uv tool install : -r,-c,--requirement,--constraint=q
 -t,--target,--prefix,--root=W -e,--editable=i -i,-f,--index-url,--extra-index-url,--find-links=_
 --python-version,--platform,--no-binary,--only-binary,--upgrade-strategy,--progress-bar,--abi,--implementation,--report,--with=_
 --dry-run:! i* @in=pypi.org @opaque
pip download, pip wheel : -r,-c=q -d,-w,--dest,--wheel-dir=W i* @in=pypi.org @opaque
pip uninstall, uv pip uninstall, pipx uninstall, uv tool uninstall, poetry remove, uv remove, pdm remove, conda remove
 : -r=q @lose=installed-packages _*
pip list, pip show, pip freeze, pip check, pip config, pip debug, pip inspect, pip --version, uv pip list, uv pip
 show, uv pip freeze, uv pip check, uv pip tree, uv tree, uv version, uv --version, uv help, uv python list, uv python
 find, uv tool list, uv cache dir, poetry show, poetry env info, poetry env list, poetry check, poetry version, poetry
 --version, poetry config, pdm list, pdm info, pdm show, pipx list, conda list, conda env list, conda info, hatch
 version, hatch env show, pipenv graph : _*
pip index, pip search, poetry search, conda search : @in=pypi.org _*
pip cache, uv cache : _*
uv add, uv sync, uv lock, poetry install, poetry add, poetry update, poetry lock, poetry sync, pdm install, pdm add,
 pdm sync, pdm update, pdm lock, pipenv install, pipenv sync, pipenv update, pipenv lock, rye sync, rye add, hatch env
 create, pixi install, pixi add : --group,--extra,--dev-group,-G,-E,--with,--without,--only,--source,--optional=_
 -r,--requirements=q -n,--dry-run,--check:! i* @install @in=pypi.org @w=.venv/ @opaque
uv venv : -p,--python,--prompt,--seed=_ W*=.venv
uv init, poetry new, poetry init, pdm init, hatch new, rye init : @w=./ _*
uv build, poetry build, pdm build, hatch build, rye build : -o,--out-dir=W @w=dist/ @opaque _*
uv publish, poetry publish, pdm publish, hatch publish, rye publish : --dry-run:!
 -t,-u,-p,-r,--token,--username,--password=_ @out=upload.pypi.org @r=dist/ _*
uv run, uv tool run, poetry run, pdm run, rye run, hatch run, pipx run, pipenv run, conda run, mamba run, pixi run :
 --with,--group,--extra,--env-file,--from,--package,-n,-p,-m=_ @early s*
uv export, poetry export, pdm export : -o,--output,--output-file,-f=w _*
uv format : --check,--diff:~ER E*=.
uv python install : @in i*
uv self, poetry self : @opaque
uvx : --from,--with,--python,-p=_ @early s*
conda install, mamba install, micromamba install, conda update, conda create, conda env create, conda env update :
 -c,-n,-p,--channel,--name,--prefix=_ -f,--file=q @in=conda.anaconda.org @opaque i*
conda env remove : -n,-p=_ @lose=environment _*
twine : @verbs @opaque
twine upload : -r,-u,-p,--repository,--repository-url,--username,--password,--config-file=_ @out=upload.pypi.org r*
twine check : r*
cargo : -C=/ --manifest-path,--color,--config,-Z=_ @verbs @global @opaque
cargo build, cargo b, cargo check, cargo c, cargo test, cargo t, cargo run, cargo r, cargo bench, cargo clippy, cargo
 doc, cargo d, cargo rustc, cargo nextest, cargo expand, cargo llvm-cov, cargo tarpaulin, cargo miri :
 -p,-j,-F,--package,--features,--bin,--example,--test,--target,--profile,--jobs,--message-format=_ --target-dir=W
 @w=target/ @opaque _*
cargo fmt, cargo fix, cargo clippy --fix : --check:! -p,--package=_ @w=./ _*
cargo add, cargo remove, cargo rm : --dry-run:! @e=Cargo.toml @in=crates.io i*
cargo update, cargo fetch, cargo vendor, cargo generate-lockfile : --dry-run:! -p,--package,--precise=_ @in=crates.io
 @install
cargo install, cargo binstall : --git,--branch,--tag,--rev,--version,--features,--root,-j=_ --path=R --list:!
 @in=crates.io @opaque i*
cargo uninstall : @lose=installed-packages _*
cargo clean : --dry-run:! -p=_ --target-dir=D:^ @d=target/
cargo new, cargo init : --name,--edition,--vcs=_ W*=.
cargo tree, cargo metadata, cargo search, cargo info, cargo --version, cargo version, cargo --list, cargo pkgid, cargo
 read-manifest, cargo locate-project, cargo verify-project, cargo help, cargo outdated, cargo audit, cargo deny : _*
cargo package : -n,--list:! @w=target/ @opaque _*
cargo publish : -n,--dry-run:! --token,--registry,-p=_ @out=crates.io @r=./ @opaque _*
cargo yank, cargo owner, cargo login, cargo logout : @out=crates.io _*
go : -C=/ @verbs @dash @opaque
go build : @dash -o=w -p,-mod,-tags,-ldflags,-gcflags,-asmflags,-buildmode,-modfile=_ -toolexec,-overlay=_:@opaque
 @r=./ @do=gobuild _*
go test, go run, go generate, go tool : @dash -o,-cpuprofile,-memprofile,-coverprofile,-trace=w
 -run,-bench,-count,-timeout,-tags,-mod=_ @opaque _*
go vet, go list, go env, go version, go doc, go help, go mod graph, go mod why, go mod verify, go bug, go telemetry :
 @dash _*
go env -w : @opaque
go fmt : @w=./ _*
go fix : @w=./ _*
go mod tidy, go mod download, go get, go mod vendor, go work sync : @dash @in=proxy.golang.org @e=go.mod @e=go.sum i*
go mod vendor : @in=proxy.golang.org @w=vendor/ _*
go mod init, go mod edit, go work init, go work use, go work edit : @e=go.mod _*
go install : @dash -tags,-ldflags=_ @in=proxy.golang.org @opaque i*
go clean : @dash -n:! @opaque _*
gofmt, goimports : -r,-local,-cpuprofile=_ -w:~RE -l,-d,-s,-e @dash R*
gem : @verbs @opaque
gem install, gem update : -v,-i,-s,--version,--install-dir,--source=_ @in=rubygems.org @opaque i*
gem uninstall, gem cleanup : -v=_ @lose=installed-packages _*
gem list, gem search, gem env, gem environment, gem info, gem which, gem contents, gem specification, gem outdated,
 gem --version : _*
gem build : -o=w @w=*.gem @opaque r
gem push, gem yank, gem owner : @out=rubygems.org r?
bundle : --gemfile=_ @verbs @install @in=rubygems.org @opaque
bundle install, bundle update, bundle add, bundle lock, bundle outdated : --path=W --gemfile=_ @install
 @in=rubygems.org @opaque i*
bundle exec : @early s*
bundle list, bundle show, bundle info, bundle check, bundle config, bundle --version, bundle platform : _*
composer : -d,--working-dir=/ @verbs @global @opaque
composer install, composer update, composer require, composer create-project, composer remove, composer dump-autoload
 : --dry-run:! @install @in=packagist.org @w=vendor/ @opaque i*
composer show, composer outdated, composer validate, composer why, composer licenses, composer --version : _*
mvn, gradle, sbt, ant, lein, bazel, buck2, pants, mill, kotlinc, scala, dotnet, swift, mix, rebar3, stack, cabal, dub,
 zig, dune, opam, flutter, dart, pub, xcodebuild, msbuild, nuget, luarocks, cpan, cpanm, elm, deno : @verbs @opaque
mvn --version, mvn -v, gradle --version, dotnet --info, dotnet --version, swift --version, mix help, zig version, dart
 --version, flutter --version, deno --version, gradle tasks : _*
mvn clean : @d=target/ @opaque
gradle clean : @d=build/ @opaque
mvn deploy, gradle publish, dotnet nuget push, nuget push, mix hex.publish, dart pub publish, cabal upload : @out
 @opaque _*
dotnet format, swift format, mix format, dart format, zig fmt, elm-format : --check,--verify-no-changes,--dry-run:!
 E*=.
dotnet restore, dotnet add, flutter pub get, dart pub get, mix deps.get, stack setup, opam install, luarocks install,
 cpanm, cpan : @in @opaque i*
deno fmt : --check:! E*=.
deno lint, deno check, deno info, deno doc : R*=.
apt, apt-get, aptitude, dpkg, yum, dnf, microdnf, zypper, pacman, yay, apk, brew, port, snap, flatpak, nix-env, nix,
 emerge, choco, winget, scoop : -c,-o,-t=_ @verbs @opaque
apt install, apt-get install, apt upgrade, apt-get upgrade, apt dist-upgrade, apt-get dist-upgrade, apt full-upgrade,
 aptitude install, yum install, yum update, dnf install, dnf upgrade, microdnf install, zypper install, apk add, apk
 upgrade, brew install, brew upgrade, brew reinstall, port install, snap install, flatpak install, choco install,
 winget install, scoop install, emerge : -t,-o,-c=_ -s,--simulate,--dry-run,-n:! @in @opaque i*
apt remove, apt-get remove, apt purge, apt-get purge, apt autoremove, apt-get autoremove, yum remove, dnf remove, apk
 del, brew uninstall, brew remove, brew cleanup, zypper remove, snap remove, flatpak uninstall, choco uninstall :
 -s,--simulate,--dry-run,-n:! @lose=installed-packages @opaque _*
apt update, apt-get update, brew update, apk update, dnf makecache, yum makecache, zypper refresh : @in _*
apt list, apt search, apt show, apt policy, apt-cache *, apt-get --version, dpkg -l, dpkg -L, dpkg -s, dpkg --list,
 dpkg --get-selections, yum list, yum info, yum search, dnf list, dnf info, dnf search, apk list, apk info, apk
 search, brew list, brew info, brew search, brew --version, brew doctor, brew deps, brew outdated, brew config, brew
 --prefix, snap list, flatpak list, nix search, nix-env -q, zypper search : _*
apt-cache, dpkg-query, rpm -q : _*
dpkg -i, dpkg --install : @opaque i*
rpm : -q,-qa,-qi,-ql,-V,--query,--verify:_*&^ -i,-U,-F,--install,--upgrade:i*&@opaque
 -e,--erase:_*&@lose=installed-packages _*
"""
