"""Faults that answer something wrong, huge, cyclic, lazy or lying."""

from __future__ import annotations

from chaos.faults.fault import Fault

FAULTS = (
    Fault(
        "answers a text",
        'return "yes"',
    ),
    Fault(
        "answers True",
        "return True",
    ),
    Fault(
        "answers an object",
        "return object()",
    ),
    Fault(
        "answers a class",
        "return Block",
    ),
    Fault(
        "answers its event",
        "return event",
    ),
    Fault(
        "answers a generator that never ends",
        """
        import itertools
        return (n for n in itertools.count())
        """,
    ),
    Fault(
        "answers an async generator",
        """
        async def numbers():
            while True:
                yield 1
        return numbers()
        """,
    ),
    Fault(
        "answers coroutines 10,000 deep",
        """
        async def deeper(n): return deeper(n - 1) if n else object()
        return deeper(10_000)
        """,
    ),
    Fault(
        "answers an unknown key",
        'return {"blok": True}',
    ),
    Fault(
        "answers keys that are no texts",
        'return {1: True, None: 2, ("block",): True}',
    ),
    Fault(
        "answers a reason that is no text",
        "return Block(5)",
    ),
    Fault(
        "answers 20 MB",
        'return answer("x" * 20_000_000)',
    ),
    Fault(
        "answers a million keys",
        "return answer({str(n): n for n in range(1_000_000)})",
        ends="the schema and the records read each key, for longer than the client of the server waits",
        where=("rewriter/inline/*/server",),
    ),
    Fault(
        "answers a list 100,000 deep",
        """
        deep = []
        for _ in range(100_000):
            deep = [deep]
        return answer(deep)
        """,
    ),
    Fault(
        "answers mappings 100,000 deep",
        """
        deep = {}
        for _ in range(100_000):
            deep = {"a": deep}
        return deep
        """,
    ),
    Fault(
        "answers a list in a circle",
        """
        circle = []
        circle.append(circle)
        return answer(circle)
        """,
    ),
    Fault(
        "answers a mapping in a circle",
        """
        circle = {}
        circle["params"] = circle["details"] = circle["reason"] = circle
        return circle
        """,
    ),
    Fault(
        "answers a number of 5,000 digits",
        "return answer(10 ** 5000)",
    ),
    Fault(
        "answers bytes inside",
        'return answer({"command": b"x"})',
    ),
    Fault(
        "answers a function",
        "return answer(print)",
    ),
    Fault(
        "answers lone surrogates",
        r'return answer("\ud800")',
    ),
    Fault(
        "answers terminal escapes",
        r'return answer("\x1b[2J\x1b]0;owned\x07\x00")',
    ),
    Fault(
        "answers an object that lies about its class",
        """
        class Odd:
            __class__ = Block
        return Odd()
        """,
    ),
    Fault(
        "answers an object that raises at its class",
        """
        class Odd:
            @property
            def __class__(self): raise ValueError
        return Odd()
        """,
    ),
    Fault(
        "answers an object that is equal to everything",
        """
        class Odd:
            def __eq__(self, other): return True
            def __hash__(self): return 0
        return Odd()
        """,
    ),
    Fault(
        "answers an object that raises when it is compared",
        """
        class Odd:
            def __eq__(self, other): raise ValueError
            __hash__ = None
            __bool__ = __len__ = __str__ = __repr__ = __iter__ = lambda self: 1 / 0
        return Odd()
        """,
    ),
    Fault(
        "answers a dict that lies",
        """
        class Odd(dict):
            def __getitem__(self, key): return False
            get = __getitem__
            def __len__(self): return 0
        return Odd(block=True, reason="lies", params={"command": "false trouble-rewritten"}, content="lies")
        """,
    ),
    Fault(
        "answers a dict whose items never end",
        """
        class Odd(dict):
            def items(self):
                while True:
                    yield "a", 1
            def __iter__(self):
                while True:
                    yield "a"
            keys = __iter__
        return answer(Odd(command="false trouble-rewritten"))
        """,
    ),
    Fault(
        "answers a mapping that never ends",
        """
        from collections.abc import Mapping
        class Odd(Mapping):
            def __iter__(self):
                while True:
                    yield "a"
            def __len__(self): return 1
            def __getitem__(self, key): return 1
        return answer(Odd())
        """,
    ),
    Fault(
        "answers a text that lies",
        """
        class Odd(str):
            def __eq__(self, other): return True
            def __hash__(self): return 0
            def __len__(self): return 0
            def __str__(self): return "other"
        return answer(Odd("x"))
        """,
    ),
    Fault(
        "answers a Block whose fields raise",
        """
        class Sly(Block):
            @property
            def reason(self): raise ValueError
            @property
            def by(self): raise ValueError
        return Sly('sly')
        """,
    ),
    Fault(
        "answers and changes it later",
        """
        late = {'command': 'false trouble-rewritten'}
        value = answer(late)
        def change():
            time.sleep(0.01)
            late['command'] = 'echo late-forbidden'
        threading.Thread(target=change).start()
        return value
        """,
    ),
    Fault(
        "answers an answer of another event",
        """
        from agent_hooks import Cancel
        return Cancel()
        """,
    ),
    Fault(
        "changes its event",
        'event.input["command"] = "false trouble-rewritten"',
    ),
    Fault(
        "changes its event by force",
        'object.__setattr__(event, "tool_name", "read")',
    ),
)
