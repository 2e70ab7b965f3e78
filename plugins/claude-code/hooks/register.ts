// The seat of agent_hooks in Claude Code: it asks the resident server about each tool call, before all other mods.
//
// Its place in `prependPlugins` makes it the outermost link of each chain.  So it sees a call as the model made it, and the
// result as the model will read it.  Whatever fails here denies the call.
//
// The server listens on a port of this machine while a session lives.  Anybody may listen there once it has ended, so each
// request and each reply carries an HMAC-SHA-256 by a key of this user, and neither side sends the key.
import type { Register } from 'claude-code'
import { COMMAND, KEY } from './place.js'

type Answer = { hookSpecificOutput?: Record<string, any>; systemMessage?: string; [name: string]: unknown }
type Place = { port: number; head: string }
type Session = { session_id: string; transcript_path: string; cwd: string }

const NAME = 'agent-hooks'
const REMEDY =
  '; to check: agent-hooks doctor claude-code; to do without: agent-hooks uninstall claude-code, or remove ' +
  `"${NAME}@${NAME}" from "prependPlugins" and "enabledPlugins" in ~/.claude/settings.json`
const BLOCK = 64

const encoder = new TextEncoder()
// The session that runs.  The events that set it reach this mod first, so no other mod can change it.
let session: Session | null = null
let place: Place | null = null
// The turn of the main agent, and whether a hook ends it.
let turn: string | undefined
let isOver = false
// The calls about which the user is to be asked, with the reasons.
const asked = new Map<string, string>()
// The calls as they were judged, the results as they were redacted, and what hooks add to a result, by the id of the call.
const judged = new Map<string, string>()
const clean = new Map<string, string>()
const added = new Map<string, string>()

function joined(...parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

async function sha256(data: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', data))
}

function hex(data: Uint8Array): string {
  return Array.from(data, byte => byte.toString(16).padStart(2, '0')).join('')
}

function unhex(digits: string): Uint8Array {
  return new Uint8Array((digits.match(/../g) ?? []).map(pair => parseInt(pair, 16)))
}

// HMAC-SHA-256, written out because a hooks module can only digest.
async function signature(...message: Uint8Array[]): Promise<string> {
  const key = joined(unhex(KEY), new Uint8Array(BLOCK)).slice(0, BLOCK)
  const inner = await sha256(joined(key.map(byte => byte ^ 0x36), ...message))
  return hex(await sha256(joined(key.map(byte => byte ^ 0x5c), inner)))
}

function nonce(): string {
  return hex(crypto.getRandomValues(new Uint8Array(16)))
}

// Start the server unless it runs, and return its port and the beginning of each request.
async function found($: any): Promise<Place> {
  const done = await $.process.run([...COMMAND, '--seat'], { cwd: session!.cwd })
  if (done.exitCode !== 0) throw new Error('no server can be started')
  const { status, head } = JSON.parse(done.stdout)
  if (status.error !== undefined) throw new Error(String(status.error))
  return { port: status.seat, head }
}

async function posted($: any, to: Place, line: string): Promise<Answer> {
  const digest = await sha256(encoder.encode(line))
  const sent = await $.http.fetch(`http://127.0.0.1:${to.port}/agent-hooks/seat`, {
    method: 'POST',
    headers: { authorization: `agent-hooks ${await signature(encoder.encode('request '), digest)}` },
    body: line + '\n',
  })
  const text: string = sent.text
  const end = text.indexOf(' ')
  const answer = text.slice(end + 1)
  if (sent.status !== 200) throw new Error(`the server answered with status ${sent.status}`)
  if (answer === '' || text.slice(0, end) !== (await signature(digest, encoder.encode(answer))))
    throw new Error(`another program answers at port ${to.port} in the place of the server`)
  const reply = JSON.parse(answer)
  if (!Array.isArray(reply)) throw new Error(String(reply.error))
  return reply[1]
}

// Return the server's answer to an event, an empty one where agent_hooks is not installed for the project.  A server that has ended since is started once more.
async function answered($: any, event: string, fields: Record<string, unknown>): Promise<Answer> {
  if (session === null) throw new Error('the session has not begun')
  const payload = JSON.stringify({ ...session, hook_event_name: event, ...fields })
  for (const isLast of [false, true]) {
    const to = (place ??= await found($))
    if (to.port === 0) return {}
    const head = to.head.replace(/^\[\{"nonce": "[0-9a-f]*"/, `[{"nonce": "${nonce()}"`).replace('@event@', event)
    try {
      return await posted($, to, `${head}${payload}]`)
    } catch (error) {
      place = null
      if (isLast) throw error
    }
  }
  throw new Error('unreachable')
}

// The fields of a call as the settings hooks have them.
function call(e: any): Record<string, unknown> {
  const { tool, tool_use_id, agentId, consent, ...input } = e
  return { tool_name: tool, tool_use_id, tool_input: input, ...(agentId === undefined ? {} : { agent_id: agentId }) }
}

function failed(what: string, error: unknown): string {
  return `agent_hooks could not judge ${what}: ${error instanceof Error ? error.message : error}${REMEDY}`
}

const isOurs = (next: any) => next.origin.plugin === NAME && next.origin.tier === 'prepend'

export const register: Register = on => {
  // Without an installation there is no key, and no server to ask.
  if (KEY === '') return

  on('classic.SessionStart', async ($, e: any, next) => {
    session = { session_id: e.session_id, transcript_path: e.transcript_path, cwd: e.cwd }
    return await next(e)
  })
  on('classic.CwdChanged', async ($, e: any, next) => {
    if (session !== null) session = { ...session, cwd: e.new_cwd ?? e.cwd ?? session.cwd }
    return await next(e)
  })

  // Other mods neither answer nor change what this one asks for.
  on('http.fetch', async ($, e, next) => (isOurs(next) ? await next.to(e, 'core') : await next(e)))
  on('process.run', async ($, e, next) => (isOurs(next) ? await next.to(e, 'core') : await next(e)))
  on('ui.log', async ($, e, next) => (isOurs(next) ? await next.to(e, 'core') : await next(e)))

  on('turn.start', async ($, e: any, next) => {
    if (e.agentId === undefined) [turn, isOver] = [e.turnId, false]
    return await next(e)
  })
  // The results are kept by now, so the model reads the reason with the next prompt.
  on('classic.PostToolBatch', async ($, e: any, next) => {
    const result = await next(e)
    if (isOver) await ended($)
    return result
  })

  on('tool.call', async ($, e: any, next: any) => {
    let answer: Answer
    try {
      answer = await answered($, 'PreToolUse', { ...call(e), agent_hooks_link: 'call' })
    } catch (error) {
      return { deny: failed('this call, so it is denied', error) }
    }
    const before = await told($, answer)
    // The settings hook, which would end the run, is not called for a call that is denied here.
    if (answer.continue === false) isOver = true
    if (before.permissionDecision === 'deny') return { deny: String(before.permissionDecisionReason) }
    if (before.permissionDecision === 'ask') asked.set(e.tool_use_id, String(before.permissionDecisionReason))
    const rewritten = before.updatedInput === undefined ? e : { ...kept(e), ...before.updatedInput }
    judged.set(e.tool_use_id, form(rewritten))
    try {
      const result = await next(rewritten)
      return result.deny === undefined ? withContext(await redacted($, rewritten, result), before.additionalContext) : result
    } catch (error) {
      return { deny: failed('the result of this call, which has run, so it is withheld', error) }
    } finally {
      for (const each of [asked, judged, clean, added]) each.delete(e.tool_use_id)
    }
  }).catch(() => ({ deny: failed('this call, so it is denied', 'it took too long') }))

  // The settings hooks run below this link. Mods between the two may have rewritten the call, or do so with their answer.
  on('classic.PreToolUse', async ($, e: any, next: any) => {
    try {
      const first = await checked($, e)
      if (first.permissionDecision === 'deny') return { deny: String(first.permissionDecisionReason) }
      const result = await next(e)
      if (result.deny !== undefined) return result
      const input = result.updatedInput
      const last = input === undefined ? first : await checked($, { ...kept(e), ...input })
      if (last.permissionDecision === 'deny') return { deny: String(last.permissionDecisionReason) }
      if (last.permissionDecision !== 'ask') return result
      const { allow, ...rest } = result
      return { ...rest, ask: String(last.permissionDecisionReason) }
    } catch (error) {
      return { deny: failed('this call, so it is denied', error) }
    }
  }).catch(() => ({ deny: failed('this call, so it is denied', 'it took too long') }))

  // The result is redacted before other mods see it, because they may pass it on as a text beside the result.
  on('classic.PostToolUse', async ($, e: any, next: any) => {
    const result = await next(e)
    const { tool_name, tool_input, tool_use_id, agent_id } = e
    const response = result.updatedToolOutput ?? e.tool_response
    const fields = { tool_name, tool_input, tool_use_id, tool_response: response, agent_hooks_link: 'check' }
    const agent = agent_id === undefined ? {} : { agent_id }
    const found = await told($, await answered($, 'PostToolUse', { ...fields, ...agent }))
    clean.set(tool_use_id, JSON.stringify(found.updatedToolOutput ?? response))
    if (found.additionalContext !== undefined) added.set(tool_use_id, found.additionalContext)
    return found.updatedToolOutput === undefined ? result : { ...result, updatedToolOutput: found.updatedToolOutput }
  }).catch(() => ({ updatedToolOutput: failed('this result, so it is withheld', 'it took too long') }))

  on('tool.check', async ($, e: any, next: any) => {
    const result = await next(e)
    const reason = asked.get(e.tool_use_id)
    return reason !== undefined && result.decision === 'allow' ? { decision: 'ask', reason } : result
  }).catch(() => ({ decision: 'deny', reason: failed('this call, so it is denied', 'it took too long') }))
}

// Show the user what the hooks say to the user, and return the rest of the server's answer.
async function told($: any, answer: Answer): Promise<Record<string, any>> {
  try {
    if (answer.systemMessage !== undefined) await $.ui.log(answer.systemMessage)
  } catch {
    // Without a screen the text is lost, and the verdict holds.
  }
  return answer.hookSpecificOutput ?? {}
}

// Return the result of a call with the text that hooks add for the model.
function withContext(result: any, text: string | undefined): any {
  return text === undefined ? result : { ...result, context: [...(result.context ?? []), text] }
}

// End the turn.  If the client does not, the server denies each later call.
async function ended($: any): Promise<void> {
  try {
    await $.turn.abort({ turnId: turn })
  } catch {
    // The turn is ending already.
  }
}

// A call with its input, to be compared.
function form(e: any): string {
  const { tool_name, tool_input, agent_id } = call(e)
  return JSON.stringify([tool_name, tool_input, agent_id])
}

// Judge a call before the settings hooks get it. One that is still as it was judged is not judged again.
async function checked($: any, e: any): Promise<Record<string, any>> {
  if (judged.get(e.tool_use_id) === form(e)) {
    const reason = asked.get(e.tool_use_id)
    return reason === undefined ? {} : { permissionDecision: 'ask', permissionDecisionReason: reason }
  }
  const found = await told($, await answered($, 'PreToolUse', { ...call(e), agent_hooks_link: 'check' }))
  if (found.permissionDecision === 'ask') asked.set(e.tool_use_id, String(found.permissionDecisionReason))
  return found
}

function kept(e: any): Record<string, unknown> {
  const { tool, tool_use_id, agentId, consent } = e
  return { tool, tool_use_id, ...(agentId === undefined ? {} : { agentId }), ...(consent === undefined ? {} : { consent }) }
}

// Return a result as the model may read it. One that is still as it was redacted is not redacted again.
async function redacted($: any, e: any, result: any): Promise<any> {
  const text = added.get(e.tool_use_id)
  if (!result.isError && clean.get(e.tool_use_id) === JSON.stringify(result.result)) return withContext(result, text)
  const event = result.isError ? 'PostToolUseFailure' : 'PostToolUse'
  const shown = result.isError ? { error: result.text ?? String(result.result) } : { tool_response: result.result }
  const after = await told($, await answered($, event, { ...call(e), ...shown, agent_hooks_link: 'call' }))
  if (after.updatedToolOutput === undefined) return withContext(result, text ?? after.additionalContext)
  const context = result.context === undefined ? {} : { context: result.context }
  return withContext({ result: after.updatedToolOutput, ...context }, text ?? after.additionalContext)
}
