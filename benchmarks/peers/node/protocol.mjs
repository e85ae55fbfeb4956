// What benchmarks/children/protocol.py says, for the peers in JavaScript: the same roles, words and clocks.
import { createInterface } from "node:readline";

const TICK = 10;
const monotonic = () => Number(process.hrtime.bigint());
const seconds = (begin) => (monotonic() - begin) / 1e9;
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
export const say = (words) => process.stdout.write(JSON.stringify(words) + "\n");

export async function toldToGo() {
  say({ ready: true });
  const lines = createInterface({ input: process.stdin });
  for await (const _ of lines) break;
}

const roles = {
  async prepare(peer) {
    await toldToGo();
    await peer.prepare();
    say({ done: true });
  },

  async bulk(peer, { n, batch, rate }) {
    await peer.open(1);
    await toldToGo();
    const begin = monotonic();
    let told = begin;
    for (let sent = 0; sent < n; sent += batch) {
      if (rate) await sleep((sent / rate - seconds(begin)) * 1000);
      await peer.enqueueMany(Math.min(batch, n - sent));
      if (rate && monotonic() - told > TICK * 1e6) {
        told = monotonic();
        say({ sent: Math.min(sent + batch, n) });
      }
    }
    say({ sent: n, seconds: seconds(begin) });
  },

  async single(peer, { n, connections }) {
    await peer.open(connections);
    const numbers = [...Array(connections).keys()];
    await Promise.all(numbers.map(() => peer.enqueue(null)));
    await toldToGo();
    const begin = monotonic();
    await Promise.all(
      numbers.map(async () => {
        for (let i = 0; i < Math.floor(n / connections); i++) await peer.enqueue(null);
      }),
    );
    say({ seconds: seconds(begin) });
  },

  async trickle(peer, { n, every }) {
    await peer.open(1);
    await toldToGo();
    const begin = monotonic();
    for (let i = 0; i < n; i++) {
      await sleep((i * every - seconds(begin)) * 1000);
      await peer.enqueue(monotonic());
    }
    say({ seconds: seconds(begin) });
  },

  async work(peer) {
    let handled = 0;
    let told = 0;
    await toldToGo();
    setInterval(() => {
      if (handled !== told) say({ handled: (told = handled) });
    }, TICK);
    await peer.work((sent) => {
      if (handled++ === 0) say({ first: monotonic() });
      if (sent) say({ latency_ms: (monotonic() - sent) / 1e6 });
    });
  },
};

/** `makePeer(url, settings)` gives prepare, open(connections), enqueueMany(count), enqueue(sent) and work(onJob). */
export async function run(makePeer) {
  const [role, text] = process.argv.slice(2);
  const { url, settings, ...parameters } = JSON.parse(text);
  await roles[role](makePeer(url, settings), parameters);
  if (role !== "work") process.exit(0);
}
