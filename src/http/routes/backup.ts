/** Rows of the route table: the backup. It takes no path: the client decides where the stream goes. */
import { takeBackup } from '../../vault/backup/backup.ts';
import { type Route, route } from '../route.ts';

const MEDIA_TYPE = 'application/x-ndjson';

export const backupRoutes: readonly Route[] = [
  route({
    id: 'takeBackup',
    method: 'POST',
    path: '/api/v1/backup',
    summary: 'Everything in the vault as of one moment, for a backup. Values and private keys stay sealed.',
    who: 'admin',
    adminEvent: 'service.backup',
    data: null,
    content: { mediaType: MEDIA_TYPE, description: 'The records of a backup, one JSON object per line.' },
    async handle({ vault, context, disconnectSignal }) {
      // A large database takes long to copy before the first byte.
      disconnectSignal();
      return { stream: await takeBackup(vault, context), type: MEDIA_TYPE };
    },
  }),
];
