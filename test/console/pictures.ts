/**
 * The pictures of docs/console.md. They are written only if LEASEHOLD_SCREENSHOTS is set, so that a normal run of the
 * tests changes no file of the checkout; without it they are only made and measured.
 */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { compressPng } from './png.ts';

const DIRECTORY = path.resolve(import.meta.dirname, '../../docs/images/console');
const MAX_BYTES = 120 * 1024;

/** Makes the picture `name` of what the window shows. */
export async function takePicture(page: Page, name: string): Promise<void> {
  const png = compressPng(await page.screenshot({ animations: 'disabled', caret: 'hide' }));
  assert.ok(png.length <= MAX_BYTES, `${name} has ${png.length} bytes`);
  if (process.env['LEASEHOLD_SCREENSHOTS'] === undefined) return;
  mkdirSync(DIRECTORY, { recursive: true });
  writeFileSync(path.join(DIRECTORY, `${name}.png`), png);
}
