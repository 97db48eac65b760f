/** The session of the person who is signed in. The cookie is invisible to scripts; this reads who they are. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { API_BASE, ApiError, CONSOLE_HEADER, readError } from './client.ts';

export type SessionEnvironment = { id: string; name: string; type: string; test_clock_id?: string | null };
export type CurrentSession = {
  session: { id: string; created_at: string; expires_at: string };
  user: { id: string; email: string | null; name: string | null; roles: string[] };
  tenant: { id: string; name: string };
  environments: SessionEnvironment[];
  /** Resource → actions that the roles of the user allow. */
  permissions?: Record<string, string[]>;
};

export type SessionSignIn =
  | { email: string; password: string }
  | { email: string; password: string; tenant_name: string; sign_up: true }
  | { link_token: string };

/** The session, or null for a visitor who is not signed in. */
export const sessionQuery = queryOptions({
  queryKey: ['/auth/session'] as const,
  queryFn: async (): Promise<CurrentSession | null> => {
    const response = await fetch(`${API_BASE}/auth/session`);
    if (response.status === 401) return null;
    if (!response.ok) throw await readError(response);
    return (await response.json()) as CurrentSession;
  },
  staleTime: 60_000,
});

export async function createSession(signIn: SessionSignIn): Promise<void> {
  await send('POST', signIn);
}

export async function deleteSession(): Promise<void> {
  await send('DELETE');
}

async function send(method: string, body?: SessionSignIn): Promise<void> {
  const response = await fetch(`${API_BASE}/auth/session`, {
    method,
    headers: { 'content-type': 'application/json', [CONSOLE_HEADER]: '1' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  if (!response.ok) throw await readError(response);
}

/** The session of a page below sign-in, where there always is one. */
export function useSession(): CurrentSession {
  const { data } = useQuery(sessionQuery);
  if (!data) throw new ApiError(401, null);
  return data;
}

/** Whether the roles of the user allow an action. Without a list of permissions the service alone decides. */
export function can(session: CurrentSession, resource: string, action: string): boolean {
  return session.permissions === undefined || (session.permissions[resource]?.includes(action) ?? false);
}
