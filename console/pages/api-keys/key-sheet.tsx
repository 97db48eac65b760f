import type { ReactNode } from 'react';
import { Button } from '../../components/button.tsx';
import { CopyId } from '../../components/copy.tsx';
import { Facts } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { Day, Moment } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { ApiKey } from './api-key.ts';
import { TEXTS } from './texts.ts';

type KeySheetProps = {
  apiKey: ApiKey;
  blocked: string | null;
  onRotate: () => void;
  onRevoke: () => void;
  onClose: () => void;
};

export function KeySheet({ apiKey, blocked, onRotate, onRevoke, onClose }: KeySheetProps): ReactNode {
  const texts = useTexts(TEXTS);
  const { id, name, display_id, roles, type, service_account_name, created_at, last_used_at, expires_at } = apiKey;
  return (
    <SideSheet
      title={<bdi>{name}</bdi>}
      subtitle={<CopyId id={id} />}
      onClose={onClose}
      footer={
        <>
          <Button blocked={blocked} onClick={onRotate}>
            {texts.rotate}
          </Button>
          <Button isDangerous blocked={blocked} onClick={onRevoke}>
            {texts.revoke}
          </Button>
        </>
      }
    >
      <Facts
        facts={[
          { label: texts.key, value: <span className="mono">{display_id}</span> },
          { label: texts.rights, value: type === 'publishable_key' ? texts.eventsOnly : (roles ?? []).join(', ') },
          { label: texts.owner, value: service_account_name ? <bdi>{service_account_name}</bdi> : texts.person },
          { label: texts.made, value: <Moment at={created_at} /> },
          { label: texts.lastUsed, value: last_used_at ? <Moment at={last_used_at} /> : texts.never },
          { label: texts.expires, value: <Day at={expires_at} /> },
        ]}
      />
      <RecordTools record={apiKey} path="/secrets/api/keys" entity_id={id} />
    </SideSheet>
  );
}
