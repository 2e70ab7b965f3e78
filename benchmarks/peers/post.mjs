// Measures what it is told on stdin, "post N" or "spawn N", and prints the seconds each one took.
import { spawn } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import { createInterface } from "node:readline";

const { url, token, body, command } = JSON.parse(process.argv[2]);
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const headers = {
  Authorization: `Bearer ${token}`,
  "Content-Type": "application/json",
  "Content-Length": Buffer.byteLength(body),
};

async function post() {
  const request = http.request(url, { method: "POST", agent, headers });
  request.end(body);
  const [response] = await once(request, "response");
  let text = "";
  for await (const part of response) text += part;
  if (response.statusCode !== 200 || text !== "{}\n") throw new Error(`${response.statusCode} ${text}`);
}

async function start() {
  const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "pipe"] });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`exit code ${code}`);
}

const jobs = { post, spawn: start };
for await (const line of createInterface({ input: process.stdin })) {
  const [what, count] = line.split(" ");
  const begin = process.hrtime.bigint();
  for (let left = Number(count); left > 0; left--) await jobs[what]();
  console.log(Number(process.hrtime.bigint() - begin) / 1e9 / Number(count));
}
