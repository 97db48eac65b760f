/** The permissions that a deed needs, and the reason that blocks it for a user without them. */
import { useQuery } from '@tanstack/react-query';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { can, sessionQuery } from './session.ts';

/** Permission of the API, such as `plan:write`. */
export type NeededPermission = `${string}:${'read' | 'write' | 'correct'}`;
/** Permissions of a deed; null for a deed on the user's own account. */
export type Needs = NeededPermission | readonly NeededPermission[] | null;

/** The reason why the roles do not allow a deed; null if they do. */
export function useMayNot(needs: Needs): string | null {
  const texts = useTexts(TEXTS);
  const { data: session } = useQuery({ ...sessionQuery, enabled: needs !== null });
  if (needs === null || !session) return null;
  const isAllowed = [needs].flat().every((permission) => {
    const [resource, action] = permission.split(':') as [string, string];
    return can(session, resource, action);
  });
  return isAllowed ? null : texts.mayNot;
}

const TEXTS = defineTexts({ mayNot: 'Your role may not do this.' }, { de: { mayNot: 'Ihre Rolle darf das nicht.' } });
