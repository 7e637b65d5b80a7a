// The signal of a list: it aborts when the client leaves, including before the list begins.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import { CLIENT_DISCONNECTED, disconnectSignal, HALF_CLOSED_MS } from '../../src/http/connections.ts';

function exchange(state: { readableEnded?: boolean; closed?: boolean } = {}) {
  const response = Object.assign(new EventEmitter(), { closed: state.closed ?? false, writableFinished: false });
  const destroy = (): void => void response.emit('close');
  const socket = Object.assign(new EventEmitter(), { readableEnded: state.readableEnded, destroyed: false, destroy });
  const request = { socket } as unknown as IncomingMessage;
  const signal = disconnectSignal(request, response as unknown as ServerResponse, HALF_CLOSED_MS);
  return { socket, response, signal };
}

test('a list ends when its client disconnects, and a second after the client ends its side', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const gone = exchange();
  assert.equal(gone.signal.aborted, false);
  gone.response.emit('close');
  assert.equal(gone.signal.reason, CLIENT_DISCONNECTED);
  assert.equal(exchange({ closed: true }).signal.aborted, true, 'it had left before');

  const finished = exchange();
  finished.response.writableFinished = true;
  finished.response.emit('close');
  assert.equal(finished.signal.aborted, false);

  const halfClosed = [exchange(), exchange({ readableEnded: true })];
  halfClosed[0]?.socket.emit('end');
  const aborted = () => halfClosed.map(({ signal }) => signal.aborted);
  assert.deepEqual(aborted(), [false, false]);
  t.mock.timers.tick(1000);
  assert.deepEqual(aborted(), [true, true]);
});
