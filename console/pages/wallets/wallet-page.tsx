import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function WalletPage(): ReactNode {
  return <PageHead title="WalletPage" />;
}
