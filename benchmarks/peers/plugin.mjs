// Measures what it is told on stdin, "NAME N", and prints the median of the seconds that N events took.
//
// "echo" sends a line to an echo server; any other NAME sends an event through the link of that agent's plugin.
import { connect } from "node:net";
import { createInterface } from "node:readline";

const { links, echo, line } = JSON.parse(process.argv[2]);

const echoed = () =>
  new Promise((resolve, reject) => {
    const socket = connect(echo);
    let size = 0;
    socket.on("error", reject);
    socket.on("connect", () => socket.write(line));
    socket.on("data", (data) => {
      size += data.length;
      if (data.at(-1) !== 10) return;
      socket.destroy();
      if (size === Buffer.byteLength(line)) resolve();
      else reject(new Error(`${size} bytes came back`));
    });
  });

const jobs = { echo: echoed };
for (const [name, { file, hook, project, payload }] of Object.entries(links)) {
  const { askInBenchmark } = await import(file);
  jobs[name] = async () => {
    const answer = await askInBenchmark(hook, project, payload);
    if (Object.keys(answer).length) throw new Error(JSON.stringify(answer));
  };
}

for await (const told of createInterface({ input: process.stdin })) {
  const [name, count] = told.split(" ");
  const took = [];
  for (let left = Number(count); left > 0; left--) {
    const begin = process.hrtime.bigint();
    await jobs[name]();
    took.push(Number(process.hrtime.bigint() - begin) / 1e9);
  }
  took.sort((one, other) => one - other);
  console.log((took[(took.length - 1) >> 1] + took[took.length >> 1]) / 2);
}
