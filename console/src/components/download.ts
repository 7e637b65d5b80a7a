/** Saves a file that the page made. Never used for credential values. */
export function saveFile(name: string, type: string, parts: readonly BlobPart[]): void {
  const url = URL.createObjectURL(new Blob([...parts], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads the URL after the click.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
