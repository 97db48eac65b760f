import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api } from '../../client/client.ts';
import { invalidate } from '../../client/queries.ts';
import { Confirm } from '../../components/confirm.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { ApiKey } from './api-key.ts';
import { TEXTS } from './texts.ts';

/** A revoked key never works again, so its name is typed. */
export function RevokeKey({ apiKey: { id, name }, onClose }: { apiKey: ApiKey; onClose: () => void }): ReactNode {
  const texts = useTexts(TEXTS);
  const queries = useQueryClient();
  return (
    <Confirm
      needs="secret:write"
      title={texts.revokeTitle(name)}
      action={texts.revokeNow}
      typed={name}
      isDangerous
      onClose={onClose}
      onConfirm={async () => {
        await api.DELETE('/secrets/api/keys/{id}', { params: { path: { id } } });
        await invalidate(queries, '/secrets');
      }}
    >
      <p>{texts.revokeHint}</p>
    </Confirm>
  );
}
