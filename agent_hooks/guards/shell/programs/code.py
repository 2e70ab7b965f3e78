"""The rows of languages, compilers, test runners, linters and formatters."""

TABLE = r"""
sh, bash, zsh, dash, ksh, mksh, ash, fish, rbash, csh, tcsh : -o,-O,--rcfile,--init-file=_ -c:_* -n:r -s:_* @early x?
 _*
python, pypy, ipython, ptpython, micropython : -c=c:_* -m=_:_* -W,-X=_ @early @do=module x? _*
perl : -e,-E=c:_* -n,-p:r* -i?=_:~re -F,-I,-M,-m,-l,-0,-C,-D?=_ -c:r @early x? _*
ruby : -e=c:_* -n,-p:r* -r,-I=_ -C=/ -i?=_:~re -F,-K,-x,-T?=_ -c:r @early x? _*
node, nodejs : -e,-p,--eval,--print=c:_*
 -r,-C,--require,--import,--loader,--conditions,--max-old-space-size=_ --env-file=u --test,--run,--watch:@opaque
 -c,--check:r @early x? _*
php : -r,-R,-B,-E=c:_* -d,-c,-t,-S,-z=_ -f,-F=x:_* -l:r -S=_:@opaque @early x? _*
lua, luajit : -e=c:_* -l=_ @early x? _*
rscript, tclsh, osascript, julia, elixir, erl, ghci, runhaskell, guile, racket, sbcl, groovy, jshell, java, ocaml,
 swipl, octave, matlab : @dash @early @opaque x? _*
rscript, osascript, julia, elixir : -e=c:_* @early x? _*
ts-node, tsx, esr, vite-node, bun-node, zx, babel-node : -e,-p,--eval,--project,--tsconfig=_ @opaque @early x? _*
pwsh, powershell : @opaque
make, gmake, bmake, ninja, just, task, invoke, rake, doit, tox, nox, scons, meson, bazelisk, earthly, dagger, mage,
 waf, xmake, tup, redo : -C,--directory=/ -f,-j,-o,-W,-I,-l,-e,-s,-t,-k,--file,--jobs=_
 -n,--dry-run,--just-print,--recon:! @opaque _*
cmake : -S=_ -B=W -G,-D,-T,-A,-P,-C,--build,--install,--target,--preset,--config,-j=_ @opaque _*
ctest, cpack, autoconf, automake, autoreconf, configure, qmake, premake5, conan, vcpkg : @opaque
pytest, unittest, nosetests, jest, vitest, mocha, ava, tap, jasmine, karma, cypress, playwright, rspec, minitest,
 phpunit, pest, behave, robot, cucumber, bats, busted, ginkgo, gotestsum, cargo-nextest, tape, wdio, storybook, detox,
 k6, locust, ab, wrk, hey : --output,--outputFile,--junitxml,--junit-xml,--report-log,--reporter-outfile=w
 -k,-m,-c,-n,-p,-t,-w,-o,--rootdir,--cov,--cov-report=_ @opaque _*
py.test : @opaque
coverage : @verbs @opaque
coverage run : @opaque
coverage report, coverage debug : _*
coverage html : -d,--directory=W:^ @w=htmlcov/
coverage xml : -o=w:^ @w=coverage.xml
coverage json : -o=w:^ @w=coverage.json
coverage erase : @d=.coverage
nyc, c8, istanbul, hyperfine, watch, entr, watchexec, nodemon, air, concurrently, npm-run-all, run-s, run-p, turbo,
 nx, lerna, wireit, gulp, grunt, vite, webpack, rollup, esbuild, parcel, snowpack, swc, babel, next, nuxt, astro,
 remix, gatsby, ng, vue, svelte-kit, expo, react-native, electron, tauri, storybook, ember, hardhat, forge, truffle,
 foundry, anchor, capacitor, cordova, ionic, metro, eleventy, hugo, jekyll, mkdocs, sphinx-build, docusaurus,
 vuepress, gitbook, streamlit, jupyter, gradio, uvicorn, gunicorn, hypercorn, flask, celery, django-admin, manage.py,
 rails, artisan, mix, alembic, prisma, drizzle-kit, knex, sequelize, typeorm, dbt, airflow, scrapy, nbconvert,
 papermill, kedro, snakemake, nextflow : @opaque
esbuild : --outfile=w --outdir=W --tsconfig=q --bundle:~rR --servedir,--watch:@opaque r*
tsc : -p,--project,-t,--target,-m,--module,--lib,--jsx=_ --outDir,--declarationDir=W --outFile=w --noEmit:^
 --init:@w=tsconfig.json&^ @dash R*=. @w=**.js @w=**.d.ts
vue-tsc, svelte-check, pyre, pytype, ty, pyrefly : R*=.
mypy, dmypy, pyright, basedpyright :
 -p,-m,-c,--package,--module,--config-file,--python-version,--cache-dir,--exclude,--project=_
 --junit-xml,--any-exprs-report=w --html-report,--txt-report,--xml-report,--linecount-report=W --install-types:@opaque
 R*=.
ruff : --config=_ @verbs @global @opaque
ruff check :
 -e,--select,--ignore,--extend-select,--output-format,--target-version,--line-length,--exclude,--per-file-ignores=_
 -o,--output-file=w --fix,--fix-only,--unsafe-fixes,--add-noqa:~RE --diff,--no-fix:~ER R*=.
ruff format : --check,--diff:~ER --line-length,--target-version,--exclude,--range,--stdin-filename=_ E*=.
ruff rule, ruff config, ruff linter, ruff version, ruff help, ruff server, ruff analyze : _*
ruff clean : @lose=caches
black, isort, autopep8, yapf, pyupgrade, autoflake, docformatter, add-trailing-comma, reorder-python-imports, blue,
 usort, pyink, djhtml, djlint, blacken-docs, ssort, absolufy-imports, unimport, ufmt :
 -l,-t,-m,-c,-p,-k,--line-length,--target-version,--profile,--config,--exclude,--include,--settings-path,--max-line-length=_
 --check,--check-only,--diff,-d:~ER E*
autopep8, yapf, autoflake : --check,-d,--diff:~RR -i,--in-place:~RE -r,-e,--exclude,--max-line-length,--style,-p=_ R*
flake8, pylint, pyflakes, pycodestyle, pydocstyle, bandit, vulture, radon, xenon, mccabe, pyroma, semgrep, pydoclint,
 interrogate, deptry, lizard, prospector, import-linter, lint-imports, safety, pip-audit, codespell, typos, proselint,
 vale, cspell, shellcheck, hadolint, yamllint, jsonlint, markdownlint, markdownlint-cli2, textlint, actionlint,
 tflint, tfsec, checkov, trivy, gitleaks, trufflehog, detect-secrets, cppcheck, cpplint, golint, staticcheck,
 golangci-lint, revive, errcheck, ineffassign, gosec, gocyclo, ktlint, detekt, checkstyle, pmd, spotbugs, swiftlint,
 luacheck, selene, htmlhint, csslint, sqlfluff, buf, spectral, dockle, kubeval, kube-score, kubeconform, ansible-lint,
 cfn-lint, cloc, tokei, scc, sloccount, ctags, ripsecrets, dupl, jscpd, knip, depcheck, madge, ts-prune, unimported,
 size-limit, bundlesize, license-checker, syft, grype, snyk, osv-scanner :
 -c,-f,-s,-e,-l,-p,-d,--config,--format,--exclude,--ignore,--select,--rcfile,--disable,--enable,--severity,--shell,--rules=_
 -o,--output,--output-file,--report-path,--out=w -w,--write-changes,--fix,--autocorrect,-F:~UE U*=.
ctags : -f,-o=w --languages,--exclude=_ @w=tags R*
shfmt : -i,-ln,-p=_ -w,--write:~RE R*=.
eslint, stylelint, xo, standard, tslint, biome, oxlint, rome, prettier, dprint, jscodeshift, semistandard, rubocop,
 standardrb, rustfmt, clang-format, clang-tidy, astyle, uncrustify, cmake-format, php-cs-fixer, phpcbf, ocamlformat,
 ormolu, fourmolu, hlint, hindent, stylish-haskell, scalafmt, ktfmt, google-java-format, taplo, prettierd, eslint_d,
 nixfmt, nixpkgs-fmt, alejandra, stylua, zprint, cljfmt, perltidy, tidy, xmlstarlet, yamlfmt, yamlfix, mdformat,
 sqlformat, pg_format, gofumpt, golines, gci, treefmt, buildifier, markdown-toc, doctoc, fixjsstyle, htmlbeautifier :
 -c,-f,-l,-t,-s,--config,--ext,--parser,--format,--style,--plugin,--rule,--max-warnings,--ignore-path,--rulesdir,--only,--except,--edition=_
 -o,--output-file,--out=w
 --fix,--write,--apply,--fix-all,-w,-a,-A,-i,--autocorrect,--autocorrect-all,--auto-correct,--inplace,--in-place:~UE
 --check,--fix-dry-run,--list-different:~EU @verbs @global U*
biome check, biome lint, biome ci, biome format : --write,--fix,--apply,--apply-unsafe,--unsafe:~RE R*=.
rustfmt, php-cs-fixer, phpcbf, nixfmt, nixpkgs-fmt, alejandra, stylua, yamlfix, mdformat, jscodeshift, doctoc, astyle,
 treefmt, buildifier, fourmolu : --config,--edition,--config-path,-t,--transform,--style=_ --check,--dry-run,-n,-d:~ER
 E*=.
dprint fmt : E*=.
dprint check : R*=.
gcc, g++, cc, c++, clang, clang++, ld, lld, gfortran, tcc, nvcc, emcc, icc, ifort, musl-gcc :
 -D,-I,-L,-U,-W,-O,-f,-m,-std,-l,-x,-T,-isystem,-include,-arch,-target,-framework,-Xlinker=_ -o=w -MF=w @do=compiler
 r*
rustc : -C,-L,-A,-W,-D,-l,--edition,--crate-type,--crate-name,--emit,--target,--cfg,--extern=_ -o=w --out-dir=W
 @do=compiler r
javac, kotlinc, scalac : -d,-s,-h=W -cp,-classpath,-source,-target,-encoding,--release,-sourcepath=_ @dash r*
 @w=*.class
as, nasm, yasm, windres, bison, yacc, flex, lex, ragel, re2c, m4, cpp, ranlib, protoc, thrift, flatc, gperf, swig,
 moc, uic, cython : -o,--output,--output-file=w -D,-I,-f,-L,-d=_
 --python_out,--go_out,--java_out,--cpp_out,--js_out,--ts_out,--grpc_out=W r* @w=./
objcopy, strip : -j,-R,-K,-N,-O,-I,--only-section,--remove-section=_ -o=w e w?
nm, objdump, readelf, size, otool, ldd, addr2line, c++filt, dwarfdump, pahole, dumpbin :
 -j,-d,-e,--section,--start-address=_ r*
gdb, lldb, rr, delve, dlv, valgrind, perf, strace, ltrace, gprof, heaptrack, py-spy, austin, scalene, kcachegrind,
 dtrace, bpftrace : @opaque
pydoc, ri, man, info, tldr, apropos, whatis, cheat, help : _*
tsort, dot, neato, plantuml, mmdc, drawio, xelatex, pdflatex, lualatex, latexmk, bibtex, biber, makeindex, dvips,
 gnuplot : @opaque
dot, neato : -T,-K,-G,-N,-E=_ -o=w r*
protolint, buf : R*=.
nbstripout : e*
jupyter nbconvert : @opaque
"""
