"""Rules about publishing: packages, images, charts, releases and apps that others get from then on."""

from __future__ import annotations

from agent_hooks.guards.shell.rules.outside import Loss, losses

_WHY = "publishes something, which others get from then on"
_WITHDRAWN = "withdraws a published package"


def _short(verb: str, least: int) -> str:
    """Return a pattern of a verb and its beginnings of so many letters: npm takes each that no other verb has."""
    pattern = ""
    for letter in reversed(verb[least:]):
        pattern = f"(?:{letter}{pattern})?"
    return f"{verb[:least]}{pattern}"


# The options before a verb whose value is the next word.
_WITH_VALUE = r"(?:-w|--workspace|--prefix|-C|--dir|--cwd|-F|--filter|--registry|--tag|--otp)"
_PUBLISH, _UNPUBLISH, _DEPRECATE = _short("publish", 3), _short("unpublish", 3), _short("deprecate", 4)
RULES = losses(
    (
        Loss(
            "publish",
            "npm pnpm yarn bun jsr vlt",
            (
                rf"^\S+ (?:{_WITH_VALUE} \S+ |-\S+ |[\w@/.-]+=\S+ )*(?:npm )?{_PUBLISH}\b|"
                r"^\S+ .*-r publish\b|^\S+ stage publish"
            ),
            _WHY,
        ),
        Loss(
            "publish",
            "npm pnpm yarn",
            rf"^\S+ (?:npm )?(?:{_UNPUBLISH}|{_DEPRECATE}|undeprecate|dist-tag (?:add|rm|remove))\b",
            _WITHDRAWN,
        ),
        Loss(
            "publish",
            "cargo",
            r"^cargo (?:\+\S+ )?(?:publish|yank|release\b.*--execute|workspaces publish|smart-release .*--execute)\b",
            _WHY,
        ),
        Loss("publish", "twine", r"^twine (?:upload|register)\b", _WHY),
        Loss("publish", "uv poetry pdm flit hatch rye maturin setuptools", r"^\S+ (?:publish|upload)\b", _WHY),
        Loss("publish", "gem", r"^gem (?:push|yank)\b", _WHY),
        Loss("publish", "rake", r"\brake (?:release|gem:push)\b", _WHY),
        Loss(
            "publish",
            "docker podman nerdctl buildah img",
            (
                r"^\S+ (?:(?:image|manifest|compose|plugin|model|sandbox) )?push\b|^\S+ .*\bbuild\b.* --push\b|"
                r"--output[= ]type=registry|^\S+ buildx imagetools create\b"
            ),
            _WHY,
            # The last word is the target, here in a registry of this machine.
            r" (?:\S+://)?(?:localhost|127\.0\.0\.1|registry\.localhost|kind-registry)(?::\d+)?/\S*$|--dry-run|"
            r"imagetools create (?!.*(?:-t|--tag)\b)|\bbuild\b.*(?:-t|--tag)[= ](?:localhost|127\.0\.0\.1)[:/]",
        ),
        Loss(
            "publish",
            "ko",
            r"^ko (?:build|publish|apply|create|resolve)\b",
            _WHY,
            r"--local\b|-L\b|--push=false|ko\.local",
        ),
        Loss("publish", "lein boot", r"(?:^| )(?:do )?(?:deploy|release)\b", _WHY, whole=True),
        Loss("publish", "rattler-build", r"\bupload\b", _WHY),
        Loss("publish", "jib", r"^jib .*--target[= ](?!docker:|tar:)\S+", _WHY),
        Loss("publish", "helm", r"^helm (?:push|cm-push|s3 push|chart push)\b", _WHY),
        Loss(
            "publish",
            "gh glab tea hub",
            (
                r"^\S+ release (?:create|upload|edit|delete|delete-asset)\b|^gh extension publish|^gh gist (?:edit|"
                r"delete)\b|^gh repo (?:create\b.* --public|edit\b.* --visibility[= ]public)"
            ),
            _WHY,
        ),
        Loss("publish", "goreleaser", r"^goreleaser (?:release|publish|announce|continue)\b", _WHY),
        Loss("publish", "dotnet nuget", r"\b(?:nuget )?(?:push|delete|unlist)\b", _WHY),
        Loss(
            "publish",
            "mvn mvnw mill",
            r"\b(?:deploy|release:perform|nexus-staging:\w*release\w*|central-publishing:publish|publish(?!Local|M2)\w*)\b",
            _WHY,
            r"-Dmaven\.deploy\.skip",
        ),
        Loss(
            "publish",
            "gradle gradlew sbt",
            (
                r"(?:^|[\s;+:/])(?:publish(?!ToMavenLocal|Local|M2)\w*|uploadArchives|closeAndRelease\w*|sonatype\w*Release|"
                r"sonatypeUpload|bintrayUpload|ciReleaseSonatype|ci-release)(?=$|[\s;:])"
            ),
            _WHY,
            whole=True,
        ),
        Loss("publish", "vsce ovsx", r"^\S+ (?:publish|unpublish)\b", _WHY),
        Loss("publish", "semantic-release release-it np standard-release", r"", _WHY, r"--ci=false|\bnp --preview"),
        Loss(
            "publish",
            "lerna changeset changesets nx rush beachball",
            r"^\S+ (?:release )?publish\b|^nx release(?! (?:version|plan))",
            _WHY,
        ),
        Loss(
            "publish",
            "crane skopeo oras regctl kaniko jib cosign wkg",
            (
                r"^\S+ (?:image |artifact |tag |manifest )?(?:push|copy|cp|append|attach|upload|publish|apply|resolve|"
                r"put|delete|del|rm|tag)\b"
            ),
            _WHY,
            r"\b(?:copy|cp) \S+ (?:dir|oci|docker-archive|oci-archive|docker-daemon):",
        ),
        Loss(
            "publish",
            "fastlane",
            r"^fastlane match nuke\b|^fastlane (?:\w+ )?(?:release|deliver|supply|pilot|beta|upload_\w+|deploy|upload)\b",
            _WHY,
        ),
        Loss(
            "publish",
            "xcrun altool eas expo shorebird codepush appcenter",
            (
                r"--upload-app|^eas (?:submit|update)\b|^expo publish\b|^xcrun (?:notarytool submit|altool)|"
                r"^shorebird release|release-react|^appcenter distribute"
            ),
            _WHY,
            r"--validate-app",
        ),
        Loss("publish", "hex mix rebar3", r"\bhex[. ](?:publish|retire|build_and_publish)|^rebar3 hex publish", _WHY),
        Loss("publish", "dart flutter pub", r"\bpub (?:publish|lish)\b|^pub publish", _WHY),
        Loss("publish", "swift", r"^swift package-registry publish\b", _WHY),
        Loss(
            "publish",
            "butler steamcmd gplay",
            r"^butler push\b|\+run_app_build\b|^gplay (?:release|upload|promote)\b",
            _WHY,
        ),
        Loss("publish", "pod", r"^pod (?:trunk push|trunk delete|trunk deprecate|repo push)\b", _WHY),
        Loss(
            "publish",
            (
                "luarocks cpan-upload cabal stack opam conan vcpkg dub shards wapm wasmer elm deno jsr composer "
                "anaconda conda-build bump deb-s3 dput dupload copr snapcraft flatpak-builder charmcraft rsconnect "
                "quarto mkdocs mike ghp-import gh-pages surge shiv"
            ),
            (
                r"\b(?:upload|publish|push|gh-deploy|register)\b|^(?:cpan-upload|dput|dupload|surge|ghp-import|"
                r"gh-pages) \S|^surge$|^snapcraft release"
            ),
            _WHY,
        ),
        Loss(
            "publish",
            "aws",
            (
                r"\b(?:codeartifact publish-|ecr-public (?:put-image|create-repository)|serverlessrepo create-|"
                r"ssm modify-document-permission|ec2 modify-(?:image|snapshot)-attribute)"
            ),
            _WHY,
        ),
        Loss(
            "publish",
            "huggingface-cli hf kaggle ollama replicate cog wandb",
            (
                r"^(?:huggingface-cli|hf) (?:upload\S*|repos? (?:create|delete|settings)|repo-files delete|"
                r"delete\S*)\b|^kaggle .*(?:create|version|delete|push)\b|^(?:ollama|cog) push\b"
            ),
            _WHY,
        ),
        Loss("publish", "terraform tofu pulumi", r"^\S+ (?:package publish|login .*publish)", _WHY),
    )
)
