/** A browser with the cookies of one origin, as far as sessions need it: `const browser = openBrowser(api)`. */
import type { SomeAnswer } from './answers.ts';
import type { TestAnswer, TestApi, TestRequest } from './api.ts';

export type TestBrowser = {
  /** Sends the cookie, and the headers that the console and a browser add. A header that is null is not sent. */
  request<Body = SomeAnswer>(
    method: string,
    path: string,
    options?: Omit<TestRequest, 'headers'> & { headers?: Record<string, string | null> },
  ): Promise<TestAnswer<Body>>;
  /** `name=value` of the cookie; undefined without one. */
  cookie: string | undefined;
};

export const CONSOLE_HEADERS = { 'x-farthing-console': '1', 'sec-fetch-site': 'same-origin' } as const;

export function openBrowser(api: TestApi): TestBrowser {
  const browser: TestBrowser = {
    cookie: undefined,
    request: async <Body>(
      method: string,
      path: string,
      { headers = {}, ...options }: Parameters<TestBrowser['request']>[2] = {},
    ) => {
      const own = browser.cookie === undefined ? {} : { cookie: browser.cookie };
      const all = Object.entries({ ...CONSOLE_HEADERS, ...own, ...headers });
      const sent = Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== null));
      const answer = await api.request<Body>(method, path, { key: null, ...options, headers: sent });
      const [set] = answer.headers.getSetCookie();
      if (set !== undefined) browser.cookie = /^[^=]+=;/.test(set) ? undefined : set.split(';')[0]!;
      return answer;
    },
  };
  return browser;
}
