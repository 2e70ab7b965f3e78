"""The names that facts are made of: modules and attributes that start programs, open connections, or can hide both."""

from __future__ import annotations

STARTING_MODULES = frozenset(
    [
        *("_posixsubprocess", "asyncio.subprocess", "concurrent.futures.process", "multiprocessing", "popen2", "pty"),
        *("subprocess", "venv", "ensurepip", "webbrowser", "antigravity", "pydoc"),
        *("anyio.to_process", "fabric", "invoke", "pexpect", "pip", "plumbum", "psutil", "ptyprocess", "sh", "sarge"),
    ]
)
"""Modules that start programs."""
STARTING = frozenset(
    [
        *("Popen", "check_call", "check_output", "getoutput", "getstatusoutput", "popen", "startfile", "system"),
        *("create_subprocess_exec", "create_subprocess_shell", "open_process", "run_process", "subprocess_exec"),
        *("subprocess_shell", "ProcessPoolExecutor", "to_process", "subprocess", "exec", "execl", "execle", "execlp"),
        *("execlpe", "execv", "execve", "execvp", "execvpe", "fork", "forkpty", "posix_spawn", "posix_spawnp"),
        *("spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv", "spawnve", "spawnvp", "spawnvpe"),
    ]
)
"""Attributes that start programs."""
CONNECTING_MODULES = frozenset(
    [
        *("_socket", "_ssl", "ftplib", "http.client", "http.server", "http.cookiejar", "imaplib", "nntplib", "poplib"),
        *("smtplib", "smtpd", "socket", "socketserver", "ssl", "telnetlib", "urllib", "wsgiref", "xmlrpc"),
        *("aiohttp", "anthropic", "boto3", "botocore", "dns", "google", "grpc", "h11", "h2", "httpcore", "httpx"),
        *("httpx2", "hypercorn", "kafka", "litellm", "mcp", "mysql", "openai", "opentelemetry", "paho", "paramiko"),
        *("pika", "psycopg", "psycopg2", "pycurl", "pydantic_ai", "pymongo", "pymysql", "redis", "requests"),
        *("sentry_sdk", "slack_sdk", "starlette", "tornado", "treq", "twisted", "urllib3", "uvicorn", "websocket"),
        *("websockets", "zmq"),
    ]
)
"""Modules that open connections."""
CONNECTING = frozenset(
    [
        *("HTTPConnection", "HTTPSConnection", "HTTPHandler", "SocketHandler", "SysLogHandler", "DatagramHandler"),
        *("SMTPHandler", "connect_tcp", "connect_unix", "create_connection", "create_datagram_endpoint"),
        *("create_server", "create_tcp_listener", "create_udp_socket", "create_unix_connection", "create_unix_server"),
        *("create_unix_listener", "create_connected_udp_socket", "getaddrinfo", "gethostbyname", "open_connection"),
        *("open_tcp_stream", "open_unix_connection", "open_unix_socket", "open_ssl_over_tcp_stream", "serve_tcp"),
        *("start_server", "start_unix_server", "socket", "socketpair", "urlopen", "urlretrieve"),
    ]
)
"""Attributes that open connections."""
ENVIRONMENT = frozenset(["environ", "environb", "expandvars", "getenv", "getenvb", "putenv", "unsetenv", "unsetenvb"])
"""Attributes that read or change the environment."""
BUILTINS = frozenset(
    [
        *("__builtins__", "__import__", "__loader__", "__spec__", "breakpoint", "compile", "delattr", "eval", "exec"),
        *("getattr", "globals", "help", "locals", "setattr", "vars"),
    ]
)
"""Builtins that can stand for any other name."""
DYNAMIC = frozenset(
    [
        *("__builtins__", "__closure__", "__code__", "__dict__", "__getattr__", "__getattribute__", "__globals__"),
        *("__import__", "__loader__", "__reduce__", "__reduce_ex__", "__spec__", "__subclasses__", "__wrapped__"),
        *("CodeType", "FunctionType", "LambdaType", "ForwardRef", "_getframe", "_current_frames", "ag_frame"),
        *("attrgetter", "cr_frame", "exec_module", "f_back", "f_builtins", "f_globals", "f_locals", "find_module"),
        *("find_spec", "get_field", "get_type_hints", "getattr_static", "gi_frame", "import_module"),
        *("load_module", "meta_path", "methodcaller", "module_from_spec", "modules", "path_hooks"),
        *("path_importer_cache", "resolve_name", "setprofile", "settrace", "spec_from_file_location", "tb_frame"),
        # These make code objects, evaluate annotations, import a module by its name, or load a shared library.
        *("ag_code", "co_code", "cr_code", "f_code", "gi_code", "singledispatch", "singledispatchmethod", "_eval_type"),
        *("enable_load_extension", "load_extension", "make_parser", "getDOMImplementation"),
        # These load hooks, change the interceptors of other hooks, or approve.
        *("discover_and_load_hooks", "load_hooks", "initialize_interceptors", "reset_interceptors", "HookRunner"),
        *("InterceptorRegistry",),
    ]
)
"""Attributes that lead to any other object, or to the import of any module."""
OURS = frozenset(
    [
        *("__version__", "checkpoints", "effects_of", "get_interceptors", "load_settings", "testing"),
        *("wrap_tool", "wrap_tools"),
    ]
)
"""Functions and modules of agent_hooks that change no other hook.  Names with `is_` are not listed."""
WHOLE_MODULES = frozenset(
    [
        *("_ctypes", "bdb", "builtins", "cProfile", "cffi", "code", "codeop", "ctypes", "dill", "doctest", "gc"),
        *("imp", "importlib", "inspect", "logging.config", "marshal", "operator", "pdb", "pickle", "pkgutil"),
        *("profile", "runpy", "shelve", "site", "timeit", "trace", "unittest", "zipimport", "cloudpickle"),
    ]
)
"""Modules by which a file can run any code or reach any object."""
PLAIN = frozenset(
    [
        *("__future__", "_thread", "abc", "argparse", "array", "ast", "asyncio", "atexit", "base64", "binascii"),
        *("bisect", "bz2", "calendar", "cmath", "codecs", "collections", "colorsys", "concurrent", "configparser"),
        *("contextlib", "contextvars", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "email"),
        *("enum", "errno", "faulthandler", "fcntl", "filecmp", "fileinput", "fnmatch", "fractions", "functools"),
        *("getopt", "getpass", "gettext", "glob", "graphlib", "grp", "gzip", "hashlib", "heapq", "hmac", "html"),
        *("http", "io", "ipaddress", "itertools", "json", "keyword", "linecache", "locale", "logging", "lzma"),
        *("math", "mimetypes", "numbers", "os", "pathlib", "platform", "posixpath", "pprint", "pwd", "queue"),
        *("random", "re", "reprlib", "resource", "sched", "secrets", "select", "selectors", "shlex", "shutil"),
        *("signal", "sqlite3", "stat", "statistics", "string", "stringprep", "struct", "sys", "syslog", "tarfile"),
        *("tempfile", "textwrap", "threading", "time", "token", "tokenize", "tomllib", "traceback", "types"),
        *("typing", "unicodedata", "urllib.parse", "urllib.error", "uuid", "warnings", "weakref", "xml", "zipfile"),
        *("zlib", "zoneinfo"),
    ]
)
"""Modules of the standard library that do no more than the attributes that a file mentions."""
