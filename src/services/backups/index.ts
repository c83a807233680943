// Public entry point of backups: written from a running installation, restored into an empty one.
export { BackupError, writeBackup } from './backup.ts'
export { checkArchive, type Migrations, refuseFilledDatabase, restoreArchive } from './restore.ts'
