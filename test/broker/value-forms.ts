/**
 * The forms in which servers and libraries write a value, and a replacement of all of them that searches a whole text
 * by brute force. Shares no code with the redaction that it tests. Texts have one character for each byte.
 */

/** Consecutive line breaks within a form, as of a mail or a terminal. */
const MAX_BREAKS = 3;
const MASK = '[secret]';

type Escape = (mark: string) => string;

const bytesOf = (text: string, encoding: BufferEncoding = 'utf8'): string =>
  Buffer.from(text, encoding).toString('latin1');
const hexOf = (mark: string): string => mark.charCodeAt(0).toString(16);
const unicode: Escape = (mark) => `\\u${hexOf(mark).padStart(4, '0')}`;
const upperUnicode: Escape = (mark) => `\\u${hexOf(mark).toUpperCase().padStart(4, '0')}`;

/** The value in each form, by the name of the form. */
export function formsOf(value: string): ReadonlyMap<string, string> {
  const forms = new Map<string, string>();
  const tables = [charsets(value), base64(value), json(value), percent(value), html(value), quoting(value)];
  for (const [name, text] of tables.flatMap((table) => Object.entries(table))) forms.set(name, text);
  return forms;
}

function charsets(value: string): Record<string, string> {
  const little = Buffer.from(value, 'utf16le');
  const isAscii = /^[\0-\x7f]*$/.test(value);
  const isLatin = /^[\0-\xff]*$/.test(value);
  const hex = Buffer.from(value).toString('hex');
  // The zero byte at the end belongs to no character of ASCII in the other order.
  const utf16 = isAscii ? { 'UTF-16': bytesOf(value.split('').join('\0'), 'latin1') } : {};
  const orders = {
    'UTF-16LE': little.toString('latin1').replace(/\0$/, ''),
    'UTF-16BE': Buffer.from(little).swap16().toString('latin1').replace(/^\0/, ''),
  };
  return {
    raw: bytesOf(value),
    'hex, lower case': hex,
    'hex, upper case': hex.toUpperCase(),
    ...(isAscii ? utf16 : orders),
    ...(isLatin && !isAscii ? { 'Latin-1': value } : {}),
  };
}

/** Within a longer text, only the digits without bits of the neighbours. */
function base64(value: string): Record<string, string> {
  const forms = [0, 1, 2].flatMap((before): [string, string][] => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]);
    const all = bytes.toString('base64').slice([0, 2, 3][before]);
    const digits = all.replaceAll('=', '');
    const inside = (bytes.length * 8) % 6 === 0 ? digits : digits.slice(0, -1);
    const name = `base64 after ${before} bytes`;
    return [
      [`${name}, at the end`, all],
      [`${name}, without padding`, digits],
      [`${name}, in a longer text`, inside],
    ];
  });
  const url = forms.map(([name, text]) => [`${name}, for URLs`, text.replaceAll('+', '-').replaceAll('/', '_')]);
  return Object.fromEntries([...forms, ...url]);
}

function json(value: string): Record<string, string> {
  const plain = JSON.stringify(value).slice(1, -1);
  const ascii = plain.replaceAll(/[^\0-\x7f]/g, (mark) => mark.split('').map(unicode).join(''));
  const dotnet = plain.replaceAll('\\"', '\\u0022');
  const forms = {
    JSON: plain,
    'JSON of Python': ascii,
    'JSON with escaped slashes': plain.replaceAll('/', '\\/'),
    'JSON of PHP': ascii.replaceAll('/', '\\/'),
    'JSON of Go': plain.replaceAll(/[<>&]/g, unicode),
    'JSON of Rails': plain.replaceAll(/[<>&']/g, unicode),
    'JSON of Gson': plain.replaceAll(/[<>&'=]/g, unicode),
    'JSON of .NET for pages': dotnet.replaceAll(/[<>&']/g, upperUnicode),
    'JSON of .NET': dotnet.replaceAll(/[<>&'+`]/g, upperUnicode),
    'JSON in JSON': JSON.stringify(plain).slice(1, -1),
  };
  return Object.fromEntries(Object.entries(forms).map(([name, text]) => [name, bytesOf(text)]));
}

function percent(value: string): Record<string, string> {
  const encode = (kept: RegExp, space = '%20'): string =>
    [...Buffer.from(value)]
      .map((code) => String.fromCharCode(code))
      .map((mark) => (mark === ' ' ? space : kept.test(mark) ? mark : `%${hexOf(mark).toUpperCase().padStart(2, '0')}`))
      .join('');
  const upper = {
    'a URL’s component': encode(/[\w.!~*'()-]/),
    'RFC 3986': encode(/[\w.~-]/),
    'RFC 3986 with plus': encode(/[\w.~-]/, '+'),
    'a URL’s path': encode(/[\w.~/-]/),
    'a form': encode(/[\w.*-]/, '+'),
    'a whole URL': encode(/[\w.!~*'();,/?:@&=+$#-]/),
  };
  const once = Object.entries(upper).flatMap(([name, text]) => [
    [name, text],
    [`${name}, lower case`, text.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())],
  ]) as [string, string][];
  const twice = once.map(([name, text]) => [`${name}, twice`, text.replaceAll('%', '%25').replaceAll('+', '%2B')]);
  return Object.fromEntries([...once, ...twice]);
}

function html(value: string): Record<string, string> {
  const named: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  const number: Escape = (mark) => `&#${mark.charCodeAt(0)};`;
  const hex: Escape = (mark) => `&#x${hexOf(mark)};`;
  const upperHex: Escape = (mark) => `&#x${hexOf(mark).toUpperCase()};`;
  /** Each row: marks, and how they are written. */
  const write = (...rows: readonly [marks: string, escape: Escape][]): string =>
    [...value].map((mark) => rows.find(([marks]) => marks.includes(mark))?.[1](mark) ?? mark).join('');
  const byName: Escape = (mark) => named[mark] ?? mark;
  const forms = {
    'HTML of text': write(['&<>', byName]),
    'HTML of attributes': write(['&<>"', byName]),
    'HTML of lodash': write(['&<>"', byName], ["'", number]),
    'HTML of Python': write(['&<>"', byName], ["'", hex]),
    'HTML of PHP': write(['&<>"', byName], ["'", () => '&#039;']),
    'HTML of Go': write(['&<>', byName], ['"\'', number]),
    'HTML of Go’s templates': write(['&<>', byName], ['"\'+', number]),
    'HTML of Underscore': write(['&<>"', byName], ["'`", hex]),
    'HTML of Handlebars': write(['&<>"', byName], ["'`=", upperHex]),
    'HTML of Mustache': write(['&<>"', byName], ["'", number], ['`=/', upperHex]),
    'HTML in numbers': write(['&<>"\'', number]),
    'HTML in hex': write(['&<>"\'', hex]),
    'HTML in upper-case hex': write(['&<>"\'', upperHex]),
  };
  return Object.fromEntries(Object.entries(forms).map(([name, text]) => [name, bytesOf(text)]));
}

function quoting(value: string): Record<string, string> {
  return {
    'a shell’s quotes': bytesOf(value.replaceAll("'", "'\\''")),
    'a shell’s backslashes': bytesOf(value.replaceAll(/[^\w@%+=:,./-]/g, (mark) => `\\${mark}`)),
    'an inspected object': bytesOf(value.replaceAll(/[\\']/g, (mark) => `\\${mark}`)),
  };
}

/** The text with each run of bytes that belong to a form replaced once. Line breaks may wrap a form. */
export function redactAll(text: string, forms: readonly string[]): { text: string; count: number } {
  const places = [...text].flatMap((mark, at) => (mark === '\r' || mark === '\n' ? [] : [at]));
  const solid = places.map((at) => text[at]).join('');
  const covered = new Uint8Array(text.length);
  for (const form of new Set(forms)) {
    for (let at = solid.indexOf(form); at !== -1; at = solid.indexOf(form, at + 1)) {
      const own = places.slice(at, at + form.length);
      const isWrapped = own.every((place, index) => place - (own[index - 1] ?? place - 1) <= MAX_BREAKS + 1);
      if (isWrapped) covered.fill(1, own[0], (own.at(-1) ?? 0) + 1);
    }
  }
  let [out, count] = ['', 0];
  for (const [at, mark] of [...text].entries()) {
    const isStart = covered[at] === 1 && covered[at - 1] !== 1;
    if (isStart) count++;
    out += isStart ? MASK : covered[at] === 1 ? '' : mark;
  }
  return { text: out, count };
}
