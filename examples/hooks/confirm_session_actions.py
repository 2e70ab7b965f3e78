"""Ask before a conversation is left: on /clear, /new, /resume and /branch.  Without a person, it is not left.

Try it:  agent-hooks emit session:before_clear --hook examples/hooks/confirm_session_actions.py
"""

from agent_hooks import Cancel, HookAPI, HookContext, MessageEntry, SessionEvent

QUESTIONS = {
    "before_clear": "Clear the conversation?",
    "before_switch": "Leave this conversation for another one?",
    "before_branch": "Go back to an earlier message?",
}


def register(api: HookAPI) -> None:
    # If the question itself fails, the conversation is not left either.
    @api.on("session", on_error="block")
    async def confirm(event: SessionEvent, ctx: HookContext) -> Cancel | None:
        messages = sum(isinstance(entry, MessageEntry) for entry in event.entries)
        if event.reason not in QUESTIONS or (event.entries and not messages):
            return None
        stays = f"It stays in {event.session_file}." if event.session_file else "It is not saved anywhere."
        if await ctx.ui.confirm(QUESTIONS[event.reason], f"It has {messages} messages. {stays}"):
            return None
        return Cancel("the conversation goes on")
