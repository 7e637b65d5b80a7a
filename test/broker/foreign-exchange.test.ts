// What an upstream sends, and an exception about one exchange, end that exchange alone: the same process goes on.

import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { duplexPair, type Readable } from 'node:stream';
import { after, test } from 'node:test';
import { startUse } from '../../src/broker/broker-client.ts';
import { Channel } from '../../src/broker/channel.ts';
import { bodyOf, headOf, orderFor, startBroker, startUpstream } from './upstream.ts';
