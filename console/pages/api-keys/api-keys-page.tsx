import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function ApiKeysPage(): ReactNode {
  return <PageHead title="ApiKeysPage" />;
}
