/** The data that the page gets, as TypeScript declarations for the checker; browsers never load this file. */

export interface Lane {
  id: string | number; client: string; session: string; agent: string; label: string; project: string;
  first: number; last: number; calls: number;
}
export interface LeftOut { what: string; why: string; place?: string }
export interface Summary {
  days: number; here: string; sessions: number; calls: number; stopped: number; asked: number; failed: number;
  rewritten: number; redacted: number; first: number | null; last: number | null;
  lanes: Lane[]; tools: string[]; left_out: LeftOut[]; version: number;
}
export interface Header { first: number; count: number; columns: { name: string; type: string; offset: number }[]; begin?: number }
export interface DiffLine { op: " " | "+" | "-"; text: string }
export interface Effects {
  reads?: string[]; writes?: string[]; deletes?: string[]; programs?: string[]; sends?: string[]; opaque?: boolean;
}
export interface Rung {
  stage: string; kind: string; by: string; handler: string; file: string; line: number | null; gone: boolean;
  answer: string; outcome: string; reason: string; rule: string; remedy: string; at: number | null; ms: number | null;
  diff: DiffLine[] | null; programs: string[]; effects: Effects | null; redacted: Record<string, number>;
}
export interface Asked {
  title: string; message: string; by: string; to: string; waitedMs: number | null; reply: string; text: string; who: string;
}
export interface Result { status: string; size: number | null; ms: number | null; error: string; redacted: Record<string, number> }
export interface Turn {
  index: number | null; checkpoint: string | null; files: string[]; more: number; ended: boolean; mayBeIts: boolean; bringBack: string | null;
}
export interface Source { file: string; line: number | null; kind: string }
export interface Card {
  id: string; row: number; time: number; client: string; clientVersion: string; session: string; agent: string;
  lane: number; cwd: string; project: string; tool: string; nativeTool: string; origin: string; command: string; verdict: string;
  cause: string; reason: string; by: string[]; rule: string; remedy: string; trust: string; joined: string;
  sources: Source[]; input: unknown; rungs: Rung[]; questions: Asked[]; result: Result | null;
  saw: { text: string; cut: boolean } | null; turn: Turn | null; previous: number | null; next: number | null;
  newer: string | null; lost: string | null;
}
export interface Hook {
  hook: string; file: string; judged: number; stopped: number; asked: number; rewrote: number; failed: number; timedOut: number;
  p50: number | null; p99: number | null; last: number | null; gone: boolean; neverRan: boolean;
}
export interface Change { version: number; total: number; from: number }

/** Where the page's data comes from: the server, or the saved file itself. */
export interface DataSource {
  readonly saved: SavedFacts | null;
  summary(): Promise<Summary>;
  columns(after: number): Promise<{ header: Header; arrays: ArrayBuffer }>;
  commands(rows: number[]): Promise<string[]>;
  search(text: string): Promise<number[]>;
  card(row: number): Promise<Card>;
  row(id: string): Promise<number | null>;
  hooks(): Promise<Hook[]>;
  listen(onChange: (change: Change) => void, onState: (text: string) => void): void;
}
export interface SavedFacts { at: number; cards: number; calls: number; removed: number; note: string }
