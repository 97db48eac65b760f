/**
 * Zoho's data centers (zoho.com/books/api/v3/oauth, "Multi DC support"; zoho.com/accounts/protocol/oauth/multi-dc.html).
 * An account is at one of them. Requests go to these hosts alone: another host that a client or an answer names would
 * receive the tokens.
 */
import { invalid } from '../../core/foundation/error.ts';

export type DataCenter = { readonly location: string; readonly accounts_server: string; readonly api_domain: string };

export const DATA_CENTERS = [
  { location: 'us', accounts_server: 'https://accounts.zoho.com', api_domain: 'https://www.zohoapis.com' },
  { location: 'eu', accounts_server: 'https://accounts.zoho.eu', api_domain: 'https://www.zohoapis.eu' },
  { location: 'in', accounts_server: 'https://accounts.zoho.in', api_domain: 'https://www.zohoapis.in' },
  { location: 'au', accounts_server: 'https://accounts.zoho.com.au', api_domain: 'https://www.zohoapis.com.au' },
  { location: 'jp', accounts_server: 'https://accounts.zoho.jp', api_domain: 'https://www.zohoapis.jp' },
  { location: 'ca', accounts_server: 'https://accounts.zohocloud.ca', api_domain: 'https://www.zohoapis.ca' },
  { location: 'cn', accounts_server: 'https://accounts.zoho.com.cn', api_domain: 'https://www.zohoapis.com.cn' },
  { location: 'sa', accounts_server: 'https://accounts.zoho.sa', api_domain: 'https://www.zohoapis.sa' },
  { location: 'uk', accounts_server: 'https://accounts.zoho.uk', api_domain: 'https://www.zohoapis.uk' },
  { location: 'ae', accounts_server: 'https://accounts.zoho.ae', api_domain: 'https://www.zohoapis.ae' },
] as const satisfies readonly DataCenter[];

const KEYS = ['accounts_server', 'api_domain', 'location'] as const;
type NamedCenter = { readonly [Key in (typeof KEYS)[number]]?: string | undefined };

/**
 * Finds the data center that all given values name, that of the USA without any. Throws an error that names the wrong
 * value, under `path`.
 */
export function findDataCenter(named: NamedCenter, path = ''): DataCenter {
  let found: readonly DataCenter[] = DATA_CENTERS;
  for (const key of KEYS) {
    const value = named[key]?.replace(/\/$/, '');
    if (value === undefined) continue;
    found = found.filter((center) => center[key] === value);
    if (found.length === 0)
      throw invalid(`${path}${key}`, 'is not that of the data center of the account', {
        allowed: DATA_CENTERS.map((center) => center[key]),
      });
  }
  return found[0]!;
}
