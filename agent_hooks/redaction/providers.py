"""The tokens of providers, in the forms that the providers publish, and the hashes of passwords."""

from __future__ import annotations

from agent_hooks.redaction.forms import BASE64, DIGIT, IS, URL_SAFE, begins, found, labelled, tokens
from agent_hooks.redaction.rules import SecretRule

# A number in base64, as Discord writes a bot's number; the token's time and signature follow.
_DIGITS = "[MNO][DTjz][AEIMQUYcgk][w-z0-5]"
_DISCORD = rf"{begins(URL_SAFE)}(?:{_DIGITS}){{5,6}}(?:[MNO][DTjz][AEIMQUYcgk]|[MNO][AQgw])?\.[\w-]{{6}}\.[\w-]{{27,}}+"
_IN_DISCORD = r"(?=[\w-]{6}\.[\w-]{27})(?<=[\w-]{20}\.)"
_CRYPT = (
    r"(?:2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}"
    r"|(?:1|apr1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"
    r"|5\$(?:rounds=\d{1,9}\$)?[^\s$:'\"]{1,16}\$[./A-Za-z0-9]{43}"
    r"|6\$(?:rounds=\d{1,9}\$)?[^\s$:'\"]{1,16}\$[./A-Za-z0-9]{86}"
    r"|g?y\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}"
    r"|7\$[./A-Za-z0-9]{11,97}\$[./A-Za-z0-9]{43}"
    r"|argon2(?:id|i|d)\$(?:v=\d{1,3}\$)?[mtp=,\d]{5,40}\$[A-Za-z0-9+/]{8,88}\$[A-Za-z0-9+/]{16,}"
    r"|scrypt\$[lnrp=,\d]{5,40}\$[A-Za-z0-9+/]{8,88}\$[A-Za-z0-9+/=]{16,}"
    r"|pbkdf2-sha\d{1,3}\$\d{1,9}\$[./A-Za-z0-9]{8,88}\$[./A-Za-z0-9]{27,})[./A-Za-z0-9+=]*+(?![\w$])"
)
_SESSION = r"[A-Za-z0-9+/=%]{60,}+"
_CRYPTS = ("$1$", "$2", "$5$", "$6$", "$7$", "$y$", "$gy$", "$apr1$", "$argon2", "$scrypt$", "$pbkdf2")


def provider_rules() -> tuple[SecretRule, ...]:
    """Return the rules for the tokens of providers, in the forms that the providers publish."""
    return (
        tokens("rubygems-token", ["rubygems_"], r"[a-f0-9]{48}"),
        tokens("docker-token", ["dckr_pat_", "dckr_oat_"], r"[\w-]{27,}+", URL_SAFE),
        tokens("newrelic-key", ["NRAK-", "NRII-", "NRIQ-", "NRRA-", "NRBR-"], r"[\w-]{19,}+", URL_SAFE),
        found(
            "newrelic-key",
            ["FFFFNRAL"],
            rf"{begins(URL_SAFE)}(?:[0-9a-f]{{32}}|eu01xx[0-9a-f]{{26}})FFFFNRAL(?!\w)",
            "A",
        ),
        tokens("sentry-token", ["sntrys_", "sntryu_", "sntrya_"], r"[A-Za-z0-9+/=]{60,}+", rest=BASE64),
        tokens("heroku-key", ["HRKU-"], r"[\w-]{36,}+", URL_SAFE),
        tokens("mongodb-atlas-secret", ["mdb_sa_sk_"], r"[\w-]{30,}+", URL_SAFE),
        tokens("pulumi-token", ["pul-"], r"[a-f0-9]{40}", URL_SAFE),
        tokens(
            "doppler-token",
            ["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
            r"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}+",
            "A-Za-z0-9_.-",
        ),
        tokens("1password-token", ["ops_eyJ"], r"[A-Za-z0-9+/_-]{60,}+", anchor="J", rest=BASE64),
        tokens(
            "1password-token",
            ["A3-"],
            r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Z0-9-])",
            URL_SAFE,
            anchor="A",
        ),
        tokens("linear-key", ["lin_api_", "lin_oauth_"], r"[A-Za-z0-9]{40,}+"),
        tokens("notion-token", ["ntn_"], r"[0-9]{8,}[A-Za-z0-9]{32,}+"),
        tokens("notion-token", ["secret_"], rf"{DIGIT}[A-Za-z0-9]{{43}}(?![\w-])"),
        tokens(
            "figma-token",
            ["figd_", "figu_", "figo_", "figp_", "figur_", "figor_", "figuh_", "figoh_"],
            r"[\w-]{40,}+",
            URL_SAFE,
        ),
        tokens("postman-key", ["PMAK-"], r"[a-f0-9]{24}-[a-f0-9]{34}", URL_SAFE),
        tokens("grafana-token", ["glsa_"], r"[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
        tokens("grafana-token", ["glc_"], r"[A-Za-z0-9+/]{32,}+", rest=BASE64),
        tokens("grafana-token", ["eyJrIjoi"], r"[A-Za-z0-9]{60,}+", "A-Za-z0-9_.-", anchor="J", rest=BASE64),
        tokens("databricks-token", ["dapi"], r"[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])", URL_SAFE, anchor="dapi"),
        tokens("supabase-key", ["sbp_"], r"(?:v\d_|oauth_)?[a-f0-9]{40}", URL_SAFE),
        tokens("supabase-key", ["sb_secret_"], r"[\w-]{30,}+", URL_SAFE),
        tokens("planetscale-token", ["pscale_tkn_", "pscale_pw_", "pscale_oauth_"], r"[\w.=-]{32,}+", URL_SAFE),
        tokens("netlify-token", ["nfp_", "nfc_", "nfo_", "nfu_", "nfb_"], r"[A-Za-z0-9]{36,}+"),
        tokens("render-key", ["rnd_"], r"[A-Za-z0-9]{28,}+"),
        labelled("render-key", ["api.render.com/deploy/"], r"srv-[a-z0-9]{10,40}\?key=([\w-]{8,}+)", anchor="."),
        tokens(
            "tailscale-key",
            ["tskey-auth-", "tskey-api-", "tskey-client-", "tskey-scim-", "tskey-webhook-"],
            r"[A-Za-z0-9]{8,40}-[A-Za-z0-9]{16,}+",
            URL_SAFE,
        ),
        tokens("artifactory-token", ["AKCp"], r"[A-Za-z0-9]{60,}+", "A-Za-z0-9+/_-", anchor="A"),
        tokens("artifactory-token", ["cmVmdGtu"], r"[A-Za-z0-9]{56}(?![A-Za-z0-9+/=])", "A-Za-z0-9+/_-", anchor="G"),
        tokens("sonarqube-token", ["squ_", "sqp_", "sqa_", "sqco_"], r"[a-zA-Z0-9]{40,}+"),
        tokens("buildkite-token", ["bkua_", "bkct_", "bkat_", "bkaj_"], r"[A-Za-z0-9]{40,}+"),
        tokens("circleci-token", ["CCIPAT_", "CCIPRJ_"], r"[A-Za-z0-9]{20,24}_[a-fA-F0-9]{40}"),
        tokens("atlassian-token", ["ATATT3", "ATCTT3"], r"[\w=+/-]{60,}+", "A-Za-z0-9+/_-", anchor="A", rest=BASE64),
        tokens("atlassian-token", ["ATBB"], r"[A-Za-z0-9]{32}(?![A-Za-z0-9+/=])", "A-Za-z0-9+/_-", anchor="A"),
        tokens("atlassian-token", ["BBDC-"], r"[A-Za-z0-9+/@_-]{40,}+", URL_SAFE, anchor="-", rest=BASE64),
        found(
            "telegram-token",
            [":AA"],
            rf"{begins(URL_SAFE)}\d{{8,10}}:AA[\w-]{{33}}(?![\w-])",
            "A",
            sign=r"(?=[\w-]{33})",
        ),
        found("discord-token", ["."], _DISCORD, ".", "[A-Za-z0-9_.-]{16}", _IN_DISCORD),
        labelled(
            "discord-webhook",
            ["discord.com/api/", "discordapp.com/api/"],
            r"(?:v\d{1,2}/)?webhooks/\d{15,21}/([\w-]{60,}+)",
            anchor=".",
        ),
        labelled(
            "teams-webhook",
            [".webhook.office.com/"],
            r"webhook(?:b2)?/([\w@-]{36,80}/[A-Za-z]{5,30}/[\w/-]{32,}+)",
            anchor=".",
        ),
        tokens("google-token", ["1//0"], r"[\w-]{40,}+", "A-Za-z0-9_/.-", anchor="1//0"),
        tokens("square-token", ["sq0atp-", "sq0csp-", "sq0isp-"], r"[\w-]{22,}+", URL_SAFE),
        tokens("square-token", ["EAAA"], r"(?!AA)[\w+=-]{60}(?![\w+/=-])", "A-Za-z0-9+/_-", anchor="A"),
        found(
            "azure-secret",
            ["Q~"],
            rf"{begins('A-Za-z0-9_.~-')}[\w.~]{{3}}\dQ~[\w.~-]{{31,34}}(?![\w.~-])",
            "~",
            r"[\w.~-]{31}",
            r"(?<=\dQ~)",
        ),
        labelled(
            "azure-sas", ["sig="], r"([A-Za-z0-9%+/_-]{40,}+=?)(?![\w-])", anchor="g=", sign="(?=[A-Za-z0-9%+/_-]{40})"
        ),
        tokens("aws-session-token", ["IQoJb3JpZ2luX2"], _SESSION, anchor="J", rest=""),
        tokens("aws-session-token", ["FwoGZXIvYXdz", "FQoGZXIvYXdz"], _SESSION, anchor="G", rest=""),
        labelled(
            "aws-session-token",
            ["aws_session_token", "AWS_SESSION_TOKEN"],
            rf"{IS}([A-Za-z0-9/+=]{{40,}}+)",
            anchor="_",
        ),
        labelled(
            "totp-secret", ["otpauth://"], r"[^\s\"'<>]{0,300}?[?&]secret=([A-Za-z2-7]{8,}+)(?![\w-])", anchor="uth"
        ),
        labelled(
            "totp-secret",
            [
                "totp_secret",
                "TOTP_SECRET",
                "otp_secret",
                "OTP_SECRET",
                "mfa_secret",
                "MFA_SECRET",
                "2fa_secret",
                "2FA_SECRET",
            ],
            rf"{IS}([A-Z2-7]{{16,}}+)(?![\w-])",
            anchor="_",
        ),
        found(
            "password-hash",
            _CRYPTS,
            rf"{begins('A-Za-z0-9_$')}\${_CRYPT}",
            "$",
            r"(?=[12567yga]|scr|pbk)(?=[a-z0-9-]{1,14}\$[^\s$]{1,40}\$)",
        ),
        labelled(
            "password-hash",
            ["pbkdf2_sha"],
            r"(?:1|256|512)\$\d{1,9}\$[A-Za-z0-9]{8,40}\$([A-Za-z0-9+/=]{20,}+)(?![\w-])",
            anchor="_",
        ),
    )
