/** What goes wrong on this side: a call that is refused, and a setup that cannot be used. Neither message ever holds a value. */

/** The server refuses a call by itself; the model reads the code and the sentence. */
export class ToolError extends Error {
  readonly code: 'INVALID_REQUEST' | 'NOT_ALLOWED' | 'NOT_FOUND' | 'NAME_TAKEN' | 'BUSY' | 'STOPPING' | 'FAILED';

  constructor(code: ToolError['code'], message: string) {
    super(message);
    this.code = code;
  }
}
