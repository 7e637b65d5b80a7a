export const CONSOLE_OUTPUT: string;
export const CONSOLE_STAMP: string;
export function consoleFingerprint(): string;
export function isConsoleBuilt(): boolean;
