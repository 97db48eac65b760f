import type { ReactNode } from 'react';
import { useGet } from '../../client/queries.ts';
import { useTexts } from '../../texts/texts.ts';
import { TEAM_TEXTS } from './team-texts.ts';

/** Roles by their names. */
export function RoleNames({ roles }: { roles: readonly string[] }): ReactNode {
  const texts = useTexts(TEAM_TEXTS);
  const known = useGet('/rbac/roles');
  if (roles.length === 0) return texts.noRole;
  return roles.map((role) => known.data?.roles.find(({ id }) => id === role)?.name ?? role).join(', ');
}
