/**
 * Which lane lies where in the ribbon.
 *
 * Each agent and each sub-agent has a lane, from its first call to its last. Lanes that do not overlap share a track; the
 * tracks of a client lie together, those of its main agents above those of its sub-agents, which are half as high.
 */

/** @typedef {import("./shapes").Lane} Lane */
/** @typedef {{client: string, isSub: boolean, top: number, height: number}} Track */
/** @typedef {{tracks: Track[], trackOf: Uint16Array, height: number}} Layout */

// More lanes at once than this share tracks.
const MOST_TRACKS = 48;
const [MAIN, SUB, LEAST] = [34, 16, 4];
// The space above each client's tracks, for its name.
const NAME = 15;

/**
 * @param {readonly Lane[]} lanes
 * @param {number} room the height that the ribbon may take
 * @returns {Layout}
 */
export function layOut(lanes, room) {
  const trackOf = new Uint16Array(lanes.length);
  /** @type {Track[]} */
  const tracks = [];
  const clients = [...new Set(lanes.map((lane) => lane.client))];
  const share = Math.max(2, Math.floor(MOST_TRACKS / Math.max(1, clients.length)));
  for (const client of clients) {
    for (const isSub of [false, true]) {
      const own = lanes.flatMap((lane, at) => (lane.client === client && (lane.agent !== "main") === isSub ? [at] : []));
      own.sort((a, b) => lanes[a].first - lanes[b].first);
      pack(lanes, own, share, (at, track) => (trackOf[at] = tracks.length + track));
      const used = own.reduce((most, at) => Math.max(most, trackOf[at] + 1 - tracks.length), 0);
      for (let track = 0; track < used; track++) tracks.push({ client, isSub, top: 0, height: 0 });
    }
  }
  return { tracks, trackOf, height: place(tracks, room) };
}

/**
 * Give each lane the first track that is free at its beginning, or else the one that is free next.
 * @param {readonly Lane[]} lanes
 * @param {number[]} own
 * @param {number} most
 * @param {(lane: number, track: number) => void} give
 */
function pack(lanes, own, most, give) {
  /** @type {number[]} */
  const ends = [];
  for (const at of own) {
    let track = ends.findIndex((end) => end < lanes[at].first);
    if (track < 0) track = ends.length < most ? ends.push(-Infinity) - 1 : ends.indexOf(Math.min(...ends));
    ends[track] = Math.max(ends[track], lanes[at].last);
    give(at, track);
  }
}

/**
 * Set the tops and heights of tracks, and return the height of all.
 * @param {Track[]} tracks
 * @param {number} room
 */
function place(tracks, room) {
  const names = new Set(tracks.map((track) => track.client)).size * NAME;
  const wanted = tracks.reduce((sum, track) => sum + (track.isSub ? SUB : MAIN), 0);
  const scale = Math.min(1, Math.max(0, room - names) / Math.max(1, wanted));
  let top = 0;
  tracks.forEach((track, at) => {
    if (at === 0 || tracks[at - 1].client !== track.client) top += NAME;
    track.top = top;
    track.height = Math.max(LEAST, Math.floor((track.isSub ? SUB : MAIN) * scale) - 2);
    top += track.height + 2;
  });
  return top;
}
