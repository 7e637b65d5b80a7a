/** Saves the filtered entries as newline-delimited JSON, page by page, so that a cancelled export stops reading. */
import { useRef, useState } from 'react';
import type { AuditFilter } from '../../../../src/client/types.ts';
import { saveFile } from '../../components/download.ts';
import { announce } from '../../components/live-region.tsx';
import { ErrorPanel } from '../../components/states.tsx';
import { client } from '../../session/console-client.ts';
import { readNewest } from './log-rows.ts';

const PAGE_ROWS = 1000;
const NAME = 'leasehold-audit.ndjson';
const TYPE = 'application/x-ndjson';

/** Reports the progress, such as `1,000 entries`. */
type OnProgress = (text: string) => void;
const MIB = 1024 * 1024;

/** Reads the entries, oldest first, up to the newest one when the reading began. */
async function readFiltered(filter: AuditFilter, signal: AbortSignal, onProgress: OnProgress): Promise<Blob[]> {
  const parts: Blob[] = [];
  const newest = await readNewest(signal);
  let after = 0;
  for (let rows = 0; ; ) {
    const range = { after, before: newest + 1, order: 'asc', limit: PAGE_ROWS } as const;
    const { data } = await client.audit.list({ ...filter, ...range }, { signal });
    // Blobs, because the browser may move them out of memory.
    if (data.length > 0) parts.push(new Blob([`${data.map((entry) => JSON.stringify(entry)).join('\n')}\n`]));
    rows += data.length;
    onProgress(`${rows.toLocaleString('en')} entries`);
    const last = data.at(-1);
    if (last === undefined || data.length < PAGE_ROWS) return parts;
    after = last.seq;
  }
}

/** Reads the whole audit log: the server's export, which is complete and contains the state of rows. */
async function readWhole(signal: AbortSignal, onProgress: OnProgress): Promise<Blob[]> {
  const parts: Blob[] = [];
  const { bytes } = await client.audit.export({ signal });
  let size = 0;
  for await (const part of bytes) {
    parts.push(new Blob([new Uint8Array(part)]));
    size += part.length;
    onProgress(`${(size / MIB).toFixed(1)} MiB`);
  }
  return parts;
}

export function ExportButton({ filter }: { readonly filter: AuditFilter }) {
  const [progress, setProgress] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const running = useRef<AbortController | null>(null);
  const run = async (): Promise<void> => {
    if (running.current !== null) return running.current.abort();
    const controller = new AbortController();
    const { signal } = controller;
    running.current = controller;
    setError(null);
    setProgress('nothing');
    try {
      const isAll = Object.keys(filter).length === 0;
      const parts = await (isAll ? readWhole(signal, setProgress) : readFiltered(filter, signal, setProgress));
      saveFile(NAME, TYPE, parts);
      announce('The export is saved.');
    } catch (failure) {
      if (!signal.aborted) setError(failure);
    } finally {
      running.current = null;
      setProgress(null);
    }
  };
  return (
    <>
      <button type="button" onClick={() => void run()}>
        {progress === null ? 'Export' : `Cancel the export (${progress} read)`}
      </button>
      {error !== null && <ErrorPanel error={error} />}
    </>
  );
}
