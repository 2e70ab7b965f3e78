// `agent-hooks install claude-code` writes this file anew, with the command that starts the server and with the key.
export const COMMAND: readonly string[] = []
export const KEY = ''
