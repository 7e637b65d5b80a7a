// The field for a secret in a real browser: the pasted value is stored byte for byte.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { describeSecret, fromFieldText, toFieldText } from '../../console/src/components/secret-text.ts';
import { signIn, startBrowser } from '../kit/browser.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';

const service = await startTestService({ after });
const { admin } = service;
const browser = await startBrowser({ after });

const BODY = 'MHcCAQEEIIdy0oUqKqLd9cLvMNTv3XJ5oGw8ZKx1hT7o0sXbqk3hoAoGCCqGSM49';
const PEM = `-----BEGIN EC PRIVATE KEY-----\n${BODY}\nAwEHoUQDQgAE\n-----END EC PRIVATE KEY-----\n`;

/** What is pasted, and what the field says of it. */
const SECRETS = {
  pem: { text: PEM, says: `4 lines, ${PEM.length} bytes, ends with a line break` },
  'pem-of-windows': {
    text: PEM.replaceAll('\n', '\r\n'),
    says: `4 lines, ${PEM.length + 4} bytes, line breaks: CRLF, ends with a line break`,
  },
  mixed: { text: 'a\r\nb\nc\rd', says: '4 lines, 8 bytes, line breaks: CRLF and LF and CR' },
  spaces: { text: ' \tkey\t with tabs \t ', says: '1 line, 19 bytes, begins with white space, ends with white space' },
  unicode: { text: 'pässwörd 🔑', says: '1 line, 15 bytes' },
  one: { text: 'x', says: '1 line, 1 byte' },
  breaks: { text: '\n\n', says: '2 lines, 2 bytes, ends with a line break, begins with white space' },
} as const;

/** Pastes as a user does, from the browser's clipboard. */
async function paste(page: Page, text: string): Promise<void> {
  await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
  await page.keyboard.press('Control+v');
}

async function openPage(t: Parameters<typeof browser.open>[0]) {
  const opened = await browser.open(t, `${service.address}/console/credentials`, {
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  await signIn(opened, service.adminToken);
  return opened.page;
}

test('a pasted secret arrives as it was, as a new credential and as a new version', async (t) => {
  const page = await openPage(t);
  for (const [name, { text, says }] of Object.entries(SECRETS)) {
    const path = `pasted/${name}`;
    await page.getByRole('button', { name: 'Store a credential' }).click();
    const dialog = page.getByRole('dialog', { name: 'Store a credential' });
    await dialog.getByLabel('Path').fill(path);
    await dialog.getByText('A new credential will be created at this path.').waitFor();
    await dialog.getByRole('textbox', { name: 'Value' }).focus();
    await paste(page, text);
    await dialog.getByText(says, { exact: true }).waitFor();
    await page.keyboard.press('Control+Enter');
    await page.getByRole('complementary', { name: path }).waitFor();
    assert.equal((await admin.get(`/api/v1/credentials/${path}`)).body.data.value, text, name);
  }
  const path = 'pasted/one';
  await page.goto(`${service.address}/console/credentials?path=${path}`);
  await page.getByRole('complementary', { name: path }).getByRole('button', { name: 'Store a new version…' }).click();
  const dialog = page.getByRole('dialog', { name: `New version of ${path}` });
  await dialog.getByText('This path has a credential').waitFor();
  const field = dialog.getByRole('textbox', { name: 'Value' });
  await field.focus();
  // Edited after the paste: what was not edited stays as it is.
  await page.keyboard.insertText('head');
  await page.keyboard.press('Enter');
  await paste(page, 'a\r\nb\r\n');
  await page.keyboard.press('Backspace');
  await page.keyboard.insertText('tail');
  await page.keyboard.press('Control+Enter');
  await dialog.waitFor({ state: 'detached' });
  assert.equal((await admin.get(`/api/v1/credentials/${path}`)).body.data.value, 'head\na\r\nb\rtail');
});

test('the field is masked until its writer shows it, is kept by no browser, and is emptied by sending it', async (t) => {
  const page = await openPage(t);
  await page.getByRole('button', { name: 'Store a credential' }).click();
  const dialog = page.getByRole('dialog', { name: 'Store a credential' });
  const field = dialog.getByRole('textbox', { name: 'Value' });
  const masking = () => page.evaluate(`getComputedStyle(document.querySelector('textarea')).webkitTextSecurity`);
  await field.focus();
  await paste(page, PEM);
  assert.equal(await masking(), 'disc');
  for (const [name, value] of [
    ['autocomplete', 'off'],
    ['spellcheck', 'false'],
    ['name', null],
  ] as const) {
    assert.equal(await field.getAttribute(name), value);
  }
  const clipboard = () => page.evaluate<string>('navigator.clipboard.readText()');
  await page.evaluate(`navigator.clipboard.writeText('before')`);
  await field.press('Control+a');
  await field.press('Control+c');
  assert.equal(await clipboard(), 'before', 'a masked text is not copied');
  assert.deepEqual(await violationsOf(page), []);
  await dialog.getByRole('button', { name: 'Show the value' }).click();
  assert.equal(await masking(), 'none');
  assert.deepEqual(await violationsOf(page), []);
  await field.press('Control+a');
  await paste(page, 'a\r\nb');
  await field.press('Control+a');
  await field.press('Control+x');
  assert.equal(await clipboard(), 'a\r\nb');
  assert.equal(await field.inputValue(), '');
  await dialog.getByText('Stored exactly as it is typed or pasted').waitFor();
  await page.keyboard.press('Control+v');
  await dialog.getByText('2 lines, 4 bytes, line breaks: CRLF', { exact: true }).waitFor();
});

test('what a text field cannot keep is rejected by name, and nothing is inserted', async (t) => {
  const page = await openPage(t);
  await page.getByRole('button', { name: 'Store a credential' }).click();
  const dialog = page.getByRole('dialog', { name: 'Store a credential' });
  const field = dialog.getByRole('textbox', { name: 'Value' });
  const drop = (expression: string): Promise<unknown> =>
    page.evaluate(`(() => {
      const dataTransfer = new DataTransfer();
      ${expression};
      const drop = new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true });
      document.querySelector('textarea').dispatchEvent(drop);
    })()`);
  for (const [text, message] of [
    ['a\u0000b', /NUL character \(U\+0000\)/],
    ['a\ufdd0b', /noncharacter U\+FDD0/],
  ] as const) {
    await drop(`dataTransfer.setData('text/plain', ${JSON.stringify(text)})`);
    await dialog.getByRole('alert').getByText(message).waitFor();
    assert.equal(await field.inputValue(), '');
  }
  await drop(`dataTransfer.items.add(new File(['x'], 'key.pem'))`);
  await dialog.getByRole('alert').getByText('is text and not a file').waitFor();
  await drop(`dataTransfer.setData('text/plain', 'a\\r\\nb')`);
  await dialog.getByText('2 lines, 4 bytes, line breaks: CRLF', { exact: true }).waitFor();
  assert.equal(await dialog.getByRole('alert').count(), 0);
});

test('an unpaired surrogate is rejected, and every other text comes back as it was', () => {
  for (const text of ['\ud800', 'a\udfffb', '\u0000']) {
    assert.throws(() => toFieldText(text), { code: 'INVALID_REQUEST' });
    assert.throws(() => fromFieldText(text), { code: 'INVALID_REQUEST' });
  }
  for (const { text } of Object.values(SECRETS)) assert.equal(fromFieldText(toFieldText(text)), text);
  assert.equal(describeSecret(''), '');
  assert.equal(describeSecret('a'.repeat(1234)), '1 line, 1,234 bytes');
});
