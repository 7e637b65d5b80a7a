/** Reads the fenced blocks of a document, with the heading of their section. */

export interface Block {
  readonly heading: string;
  /** The word behind the fence. */
  readonly language: string;
  /** The text without the last line end. */
  readonly text: string;
}

export function readBlocks(markdown: string): Block[] {
  const blocks: Block[] = [];
  let heading = '';
  let open: { language: string; lines: string[] } | null = null;
  for (const line of markdown.split('\n')) {
    if (open === null && line.startsWith('#')) heading = line.replace(/^#+ /, '');
    if (open === null && line.startsWith('```')) {
      open = { language: line.slice(3), lines: [] };
    } else if (open !== null && line === '```') {
      blocks.push({ heading, language: open.language, text: open.lines.join('\n') });
      open = null;
    } else {
      open?.lines.push(line);
    }
  }
  if (open !== null) throw new Error(`a block under "${heading}" has no end`);
  return blocks;
}

/** Replaces what differs between runs by one name per kind: ids, times, tokens, keys. */
export function withPlaceholders(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>')
    .replaceAll(/\bleasehold\/[\w-]{22}(?![\w-])/g, 'leasehold/<vault id>')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>')
    .replaceAll(/\b\d{8}T\d{6}Z\b/g, '<time in a name>')
    .replaceAll(/\blh([asu])_(?:…|[\w-]{43})/g, '<lh$1 token>')
    .replaceAll(/"request_id":"[0-9a-f]{8}-[0-9a-z]+"/g, '"request_id":"<request>"')
    .replaceAll(/"x-request-id":"[0-9a-f]{8}-[0-9a-z]+"/g, '"x-request-id":"<request>"')
    .replaceAll(/"date":"[^"]+"/g, '"date":"<date>"')
    .replaceAll(/"expires_in":\d+/g, '"expires_in":<seconds>')
    .replaceAll(/"nonce":"[\w-]{22}"/g, '"nonce":"<nonce>"')
    .replaceAll(/"[A-Za-z0-9+/]{43}="/g, '"<32 bytes>"')
    .replaceAll(/^(\w+ +)[A-Za-z0-9+/]{43}=$/gm, '$1<32 bytes>')
    .replaceAll(/\brequest [0-9a-f]{8}-[0-9a-z]+\b/g, 'request <request>');
}
