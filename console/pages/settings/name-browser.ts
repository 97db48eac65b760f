/** Browsers by the token that names them; those that also carry the token of another stand before it. */
const BROWSERS = [
  ['Edg/', 'Edge'],
  ['OPR/', 'Opera'],
  ['Firefox/', 'Firefox'],
  ['HeadlessChrome/', 'Chrome'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
] as const;
const SYSTEMS = [
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Android', 'Android'],
  ['Windows', 'Windows'],
  ['Mac OS X', 'macOS'],
  ['CrOS', 'ChromeOS'],
  ['Linux', 'Linux'],
] as const;

/** "Firefox, Linux" for the text by which a browser describes itself; its beginning if the browser is not known. */
export function nameBrowser(user_agent: string | null): string | null {
  if (user_agent === null || user_agent.trim() === '') return null;
  const browser = BROWSERS.find(([token]) => user_agent.includes(token))?.[1];
  const system = SYSTEMS.find(([token]) => user_agent.includes(token))?.[1];
  if (browser === undefined) return user_agent.slice(0, 60);
  return system === undefined ? browser : `${browser}, ${system}`;
}
