/** Types of install.mjs, for the tests. */
export function startNotices(write: (line: string) => void, intervalMs: number): () => void;
