/**
 * Saves a file of any size: written to the disk as it is read where the browser can (File System Access), else gathered
 * and downloaded. Never used for credential values.
 */
import { saveFile } from './download.ts';

interface FilePicker {
  showSaveFilePicker(options: { suggestedName: string }): Promise<FileSystemFileHandle>;
}

const canPick = (scope: object): scope is FilePicker =>
  'showSaveFilePicker' in scope && typeof scope.showSaveFilePicker === 'function';
const isCancelled = (error: unknown): boolean => error instanceof DOMException && error.name === 'AbortError';

export interface SavedFile {
  write(part: Uint8Array<ArrayBuffer> | string): Promise<void>;
  /** Makes the file complete. */
  close(): Promise<void>;
  /** Leaves nothing. */
  abort(): Promise<void>;
}

/** Call it directly in the handler of a click. Null if the person cancelled. */
export async function openFile(name: string, type: string): Promise<SavedFile | null> {
  if (!canPick(window)) return gatherFile(name, type);
  try {
    const file = await window.showSaveFilePicker({ suggestedName: name });
    const stream = await file.createWritable();
    return {
      write: (part) => stream.write(part),
      close: () => stream.close(),
      abort: () => stream.abort(),
    };
  } catch (error) {
    if (isCancelled(error)) return null;
    throw error;
  }
}

function gatherFile(name: string, type: string): SavedFile {
  const parts: BlobPart[] = [];
  return {
    // The browser may move a blob out of its memory.
    write: async (part) => void parts.push(new Blob([part])),
    close: async () => saveFile(name, type, parts),
    abort: async () => void parts.splice(0),
  };
}
