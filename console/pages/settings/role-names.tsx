import type { ReactNode } from 'react';
import { useTexts } from '../../texts/texts.ts';
import { nameRole, ROLE_TEXTS } from './role-texts.ts';
import { TEAM_TEXTS } from './team-texts.ts';

/** Roles by their names. */
export function RoleNames({ roles }: { roles: readonly string[] }): ReactNode {
  const texts = useTexts(TEAM_TEXTS);
  const names = useTexts(ROLE_TEXTS);
  if (roles.length === 0) return texts.noRole;
  return roles.map((id) => nameRole(names, { id, name: id })).join(', ');
}
