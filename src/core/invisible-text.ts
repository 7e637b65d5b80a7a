/** Characters that a person does not see, or that change how other text looks. For terminals and the console. */

/**
 * Control and format characters, lone surrogates and line separators; and what looks like nothing or like a blank:
 * ignorable code points, which include the fillers of Hangul, the empty pattern of Braille, and all blanks but ASCII's.
 */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/** `toEscape` gets one code point at a time. */
export function escapeInvisible(text: string, toEscape: (character: string) => string): string {
  return text.replaceAll(INVISIBLE, (character) => toEscape(character));
}
