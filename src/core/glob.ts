/** Globs of the audit filter: `*` matches any sequence of code points, `?` matches one code point. */

/** Takes at most the product of the lengths in steps, because only the last star is retried. */
export function globMatches(glob: string, text: string): boolean {
  let at = 0;
  let inGlob = 0;
  let star = -1;
  let resumeAt = 0;
  while (at < text.length) {
    if (inGlob < glob.length && glob[inGlob] === '*') {
      star = inGlob++;
      resumeAt = at;
    } else if (inGlob < glob.length && glob[inGlob] === '?') {
      inGlob++;
      at += utf16LengthAt(text, at);
    } else if (inGlob < glob.length && glob[inGlob] === text[at]) {
      inGlob++;
      at++;
    } else if (star !== -1) {
      inGlob = star + 1;
      resumeAt += utf16LengthAt(text, resumeAt);
      at = resumeAt;
    } else {
      return false;
    }
  }
  while (glob[inGlob] === '*') inGlob++;
  return inGlob === glob.length;
}

/** UTF-16 code units of the code point at the index. */
const utf16LengthAt = (text: string, at: number): number => ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1);
