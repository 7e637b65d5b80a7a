/** Thrown when this server rejects a call. The model gets code and message, which never contain a value. */
export class ToolError extends Error {
  readonly code: 'INVALID_REQUEST' | 'NOT_ALLOWED' | 'NOT_FOUND' | 'NAME_TAKEN' | 'BUSY' | 'STOPPING' | 'FAILED';

  constructor(code: ToolError['code'], message: string) {
    super(message);
    this.code = code;
  }
}
