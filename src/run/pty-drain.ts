/**
 * Keeps a terminal's socket open until all that was written there has been read. WHY: the package closes it 200 ms after the program's
 * end, and Node when it meets the end of the terminal, although somebody who reads slowly has not had the rest yet.
 */
import { Socket } from 'node:net';
import type { IPty } from '@lydell/node-pty';
import { LAST_OUTPUT_MS } from './output-pump.ts';

const TICK_MS = 50;
/** After the program's end: so many ticks without a byte, and whoever still has the terminal open is not waited for. */
const QUIET_TICKS = 5;
/** The same, whatever those left behind go on writing. Ticks in which our terminal kept us waiting do not count. */
const MOST_TICKS = LAST_OUTPUT_MS / TICK_MS;

interface Reading {
  pause(): void;
  resume(): void;
  /** Reads no more of a program that has ended; false while it runs. */
  stop(): boolean;
  isStopped(): boolean;
}

/** `atExit` is called once the program has ended, while its last output is read. */
export function drainPty(pty: IPty, atExit: () => void = () => undefined): Reading {
  const socket: unknown = Reflect.get(pty, '_socket');
  if (!(socket instanceof Socket)) throw new TypeError('the terminal has no socket');
  const destroy = socket.destroy.bind(socket);
  let isPaused = false;
  let isStopped = false;
  let ticks = 0;
  let quietTicks = 0;
  let timer: NodeJS.Timeout | null = null;
  /** What the end of the terminal was met with; nothing more will come. */
  let failure: Error | null = null;
  const close = (): void => {
    if (timer !== null) clearInterval(timer);
    timer = null;
    destroy(failure ?? undefined);
  };
  const look = (): void => {
    if (isPaused || socket.readableLength > 0) quietTicks = 0;
    else if (failure !== null || ++quietTicks > QUIET_TICKS) close();
    if (!isPaused && ++ticks >= MOST_TICKS) close();
  };
  socket.on('data', () => {
    quietTicks = 0;
  });
  socket.destroy = (error?: Error): Socket => {
    failure ??= error ?? null;
    if (error === undefined) atExit();
    if (failure !== null && !isPaused && socket.readableLength === 0) close();
    else timer ??= setInterval(look, TICK_MS);
    return socket;
  };
  return {
    pause() {
      isPaused = true;
      socket.pause();
    },
    resume() {
      isPaused = false;
      socket.resume();
    },
    stop() {
      if (timer === null) return false;
      isStopped = true;
      close();
      return true;
    },
    isStopped: () => isStopped,
  };
}
