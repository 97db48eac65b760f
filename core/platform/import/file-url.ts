/** Checks the URL of an imported file (docs/rules/imports.md, "Files behind a URL"). */
import { invalid } from '../../foundation/error.ts';

const FIELD = 'file_url';

/** Checks the URL itself, before any request is sent. */
export function checkFileUrl(text: string, allowed_addresses: readonly string[]): URL {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw invalid(FIELD, 'must be an https URL');
  }
  if (url.protocol !== 'https:' && !(allowed_addresses.includes(url.hostname) && url.protocol === 'http:'))
    throw invalid(FIELD, 'must be an https URL');
  if (url.username !== '' || url.password !== '') throw invalid(FIELD, 'must not hold a user or a password');
  return url;
}
