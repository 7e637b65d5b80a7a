// An attacker on many connections: each repeats the same bytes after every response and reconnects when it is closed.
// A separate process: node attack.ts '{"port":…}'. It runs until it is killed.
import { connect } from 'node:net';

export interface Attack {
  readonly port: number;
  readonly connections: number;
  /** The head lines without the length. */
  readonly head: readonly string[];
  readonly body: string;
}

function attack({ port, head, body }: Attack): void {
  const length = Buffer.byteLength(body);
  const lines = [...head, 'Host: localhost', ...(length === 0 ? [] : [`Content-Length: ${length}`])];
  const request = Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
  const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => socket.write(request));
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
    const end = text.indexOf('\r\n\r\n');
    if (end === -1) return;
    const answerLength = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
    if (text.length < end + 4 + answerLength) return;
    const isClosing = /\r\nconnection: close/i.test(text.slice(0, end));
    text = '';
    if (isClosing) socket.destroy();
    else socket.write(request);
  });
  socket.on('error', () => undefined);
  socket.on('close', () => attack({ port, connections: 1, head, body }));
}

if (process.argv[2] !== undefined) {
  process.stdin.setEncoding('utf8');
  let text = '';
  for await (const chunk of process.stdin) text += chunk;
  const job = JSON.parse(text) as Attack;
  for (let count = 0; count < job.connections; count++) attack(job);
}
