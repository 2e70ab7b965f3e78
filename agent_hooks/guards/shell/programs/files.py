"""The rows of programs for files: reading, writing, copying, editing, searching, archives."""

TABLE = r"""
cat, tac, rev, paste, wc, fold, fmt, expand, unexpand, tsort, look, cksum, sum, md5sum, sha1sum, sha224sum, sha256sum,
 sha384sum, sha512sum, b2sum, shasum, md5, zcat, bzcat, xzcat, zstdcat, uuencode, jless, glow, ccat, view, more, most
 : -s,-d,-w,-g,-p,-t,-a,--separator,--delimiters,--width,--tabs,--algorithm=_ --files0-from=q r*
cat : r*
head, tail : -n,-c,-s,--lines,--bytes,--pid,--sleep-interval,--max-unchanged-stats=_ r*
less : -b,-h,-j,-k,-p,-P,-t,-T,-x,-y,-z,-D=_ -o,-O,--log-file,--LOG-FILE=w r*
bat, batcat : -l,-r,-m,-H,--language,--line-range,--theme,--style,--color,--paging,--pager,--tabs,--highlight-line=_
 r*
nl : -b,-d,-f,-h,-i,-l,-n,-s,-v,-w=_ r*
od : -A,-j,-N,-S,-t,--format=_ -w?=_ r*
xxd : -c,-g,-l,-o,-s,-n,-R=_ r? w?
hexdump, hd : -e,-n,-s=_ -f=q r*
strings : -n,-t,-e,-o,-T,--bytes,--radix,--encoding=_ r*
base64, base32, basenc, gbase64 : -w,--wrap=_ -o,--output=w r?
sort, gsort : -k,-t,-S,-T,--key,--field-separator,--buffer-size,--temporary-directory,--parallel,--sort=_
 -o,--output=w --files0-from=q --compress-program=_:@opaque r*
uniq : -f,-s,-w,--skip-fields,--skip-chars,--check-chars=_ r? w?
cut : -b,-c,-d,-f,--bytes,--characters,--delimiter,--fields,--output-delimiter=_ r*
join : -a,-e,-j,-o,-t,-v,-1,-2=_ r*
comm, cmp : -n,-i,--bytes,--output-delimiter=_ r*
column : -s,-o,-c,-N,-H,-R,-T,--separator,--output-separator,--table-columns=_ r*
pr : -D,-h,-l,-o,-w,-W,-N=_ r*
shuf : -n,-i,--head-count,--input-range,--random-source=_ -o,--output=w -e,--echo:_* r?
split, csplit : -a,-b,-C,-l,-n,-t,-f,--bytes,--lines,--number,--suffix-length,--additional-suffix,--prefix=_
 --filter=_:@opaque @do=split
diff, colordiff, sdiff, vimdiff : -U,-C,-W,-x,-X,-I,-F,-L,-D,--unified,--context,--exclude,--label,--width=_
 -o,--output=w -r,--recursive:~rR r*
file : -F,-m,-P,-e,--magic-file=_ -f,--files-from=q u*
iconv : -f,-t,--from-code,--to-code=_ -o,--output=w r*
dos2unix, unix2dos, mac2unix : -n,--newfile:r+w -c,-i=_ e*
tr : _*
tee, gtee : -a,--append:~wA w*
sponge : w?
truncate : -s,--size=_ -r,--reference=q w*
touch : -d,-t,--date,--time=_ -r,--reference=u w* @rights
mkdir, gmkdir : -m,-Z,--mode=_ M*
mkfifo : -m,-Z,--mode=_ w*
mknod : -m,--mode=_ w _*
mktemp : -p,--tmpdir,--suffix=_ @do=mktemp
rm, grm, srm, trash, trash-put, rmtrash, del, erase : -r,-R,--recursive:D* --interactive?=_ d*
rimraf, del-cli : -i,--ignore=_ D*
unlink, rmdir, rd : d*
shred, wipe : -n,-s,--iterations,--size,--random-source=_ -u,--remove:d* w*
cp, gcp, ditto : -S,--suffix=_ --sparse,--reflink,--backup,--preserve,--no-preserve?=_
 -r,-R,-a,--recursive,--archive:~rR -t,--target-directory=t:r* r* t
mv, gmv : -S,--suffix=_ -t,--target-directory=t:m* m* t
install, ginstall : -m,-o,-g,-S,--mode,--owner,--group,--suffix=_ -t,--target-directory=t:r* -d,--directory:w* r* t
ln, link, gln : -S,--suffix=_ -t,--target-directory=t:n* n* t
rename, prename, perl-rename : -n,--nono,--no-act:! -e=_:-1 _ m* @w=./
mmv, qmv, vidir : @opaque @w=./
readlink, realpath, basename, dirname, stat, pathchk, namei, lsattr, getfacl, getfattr :
 -c,-f,-s,-d,-n,-m,--format,--printf,--suffix,--relative-to,--relative-base=_ l*
ls, ll, la, dir, vdir, exa, eza, lsd : -I,-w,-T,-L,-s,--ignore,--hide,--width,--tabsize,--sort,--time,--level=_ l*=.
tree : -L,-P,-I,-T,-H,--filelimit,--sort,--charset=_ -o=w --fromfile:r* l*=.
du, dust, ncdu : -d,-B,-t,--max-depth,--block-size,--threshold,--exclude,--time-style=_ -X,--exclude-from=q l*=.
df, findmnt, lsblk, blkid, mountpoint : -t,-x,-B,-o,--type,--output,--block-size=_ l*
chmod, gchmod : --reference=u:w* -R,--recursive:_+W* _ w* @do=chmod @rights
chown, chgrp, gchown : --reference=u:w* --from=_ -R,--recursive:_+W* _ w* @rights
chattr, chflags : -R:_+W* _ w* @rights
setfacl : -m,-x,-M,-X,--modify,--remove=_ -R,--recursive:W* w* @rights
setfattr : -n,-v,-x,--name,--value,--remove=_ w* @rights
xattr : -p,-l:_* -w:_+_+w* -d:_+w* -c:w* w* @rights
attr, chcon : -s,-r,-V,-t,-u=_ -R:W* _ w* @rights
dd, gdd : if==r of==w bs==_ count==_ skip==_ seek==_ conv==_ iflag==_ oflag==_ status==_ ibs==_ obs==_ cbs==_
fallocate : -l,-o,--length,--offset=_ w
patch, gpatch : -p,-B,-D,-F,-V,-Y,-z,-g,--strip,--fuzz,--prefix,--suffix=_ -i,--input=q -o,--output=w
 -r,--reject-file=w -d,--directory=/ --dry-run,-C:! e? q? @do=patch
apply_patch, applypatch : @do=patch
grep, egrep, fgrep, ggrep, zgrep, pcregrep, pcre2grep, bzgrep, xzgrep, zipgrep :
 -A,-B,-C,-m,-d,-D,--include,--exclude,--exclude-dir,--max-count,--context,--after-context,--before-context,--label=_
 --color,--colour?=_ -e,--regexp=_:-1 -f,--file=q:-1 --exclude-from=q -r,-R,--recursive:~rR&. _ r*
rg, ag, ack, ripgrep :
 -A,-B,-C,-m,-g,-t,-T,-j,-M,-r,-E,-d,-G,--glob,--iglob,--type,--type-not,--max-count,--context,--sort,--color=_
 --max-depth,--replace,--threads,--engine,--encoding,--ignore-dir,--colors,--max-columns,--max-filesize,--ignore-file=_
 -e,--regexp=_:-1 -f,--file=q:-1 --pre=_:@opaque --files:l*=. @stdin _ R*=.
ast-grep, sg : -p,-r,-l,--pattern,--rewrite,--lang=_ -U,--update-all:~RE @verbs @global R*=.
sed, gsed : -l,--line-length=_ -n,-E,-r,-s,-u,-z -e,--expression=_:-1 -f,--file=q:-1 -i,--in-place?=_:~re _ r* @do=sed
awk, gawk, mawk, nawk, busybox-awk : -F,-v,--field-separator,--assign=_ -f,--file=q:-1 -i,--include=_ _ r* @do=awk
jq, gojq, jaq : --arg,--argjson=_2 --slurpfile,--rawfile=r2 -L,--indent=_ -f,--from-file=q:-1 --args,--jsonargs:_* _
 r*
yq : -o,-p,-I,--output-format,--input-format,--indent,--expression=_ --from-file=q:-1 -i,--inplace:~re @verbs @global
 _ r*
yq e, yq eval, yq ea, yq eval-all : -s,--split-exp=_:@w=./ _ r*
xmllint : --xpath,--schema,--dtdvalid,--encode,--pretty=_ --output,-o=w r*
tomlq, dasel, fx, gron, mlr, csvcut, csvgrep, csvstat, csvlook, xsv : -r,-f,-w,-c,-m,--file,-d=_ _ r*
find, gfind : @do=find
fd, fdfind : @do=fd
locate, mlocate, plocate, which, whereis, type, hash, compgen : _*
xargs, gxargs : -a,--arg-file=q -E,-I,-L,-n,-P,-s,-d,--replace,--max-args,--max-procs,--delimiter,--max-lines=_ @early
 s*
parallel : -a,--arg-file=q -j,-I,-N,-S,-d,--jobs,--colsep,--tmpdir=_ --joblog=w --results=W @early s*
ed, red : -p=_ @do=saves @opaque e*
vi, vim, nvim : -c,-S,-s,-u,-i,-T,-V,-w,--cmd=_ -R:~er @do=saves @opaque e*
ex : -c,-S,-u,-i,-T,-V,-w,--cmd=_ -R:~er @do=saves @opaque e*
nano, pico, micro, emacs, joe, jed, mg, kak, helix, hx, code, subl, cursor, zed :
 -c,-S,-s,-u,-i,-T,-V,-w,--cmd,--eval,--load=_ @opaque e*
open, xdg-open, gio, start : -a,-b,-e=_ @opaque l*
tar, bsdtar, gtar : @old -f,--file=a -C,--directory=C -T,-X,--files-from,--exclude-from=q
 -b,-H,-K,-N,-V,-L,-g,--exclude,--strip-components,--transform,--xform,--format,--owner,--group,--mode,--mtime,--suffix=_
 --totals,--checkpoint?=_ --checkpoint-action,--to-command,-I,-F,--use-compress-program,--info-script=_:@do=filter
 -x,--extract,--get:@w=./ -O,--to-stdout:^ -c,--create:~aw&R* -r,-u,--append,--update:~ae&R* --delete:~ae
 --remove-files:~Rm _*
zip : -b,-n,-P,-t,-tt,-x,-i,-O,--exclude,--include,--password,--suffixes,--out=_ -T,-TT=_ -d,--delete:e+_*
 -m,--move:w+m* @do=zip w R*
unzip, bsdunzip : -d=C -P,-x,-O,-I=_ -l,-v,-t,-z,-Z,-p,-c:^ a _* @w=./
7z, 7za, 7zz : @verbs @opaque
7z x, 7za x, 7zz x, 7z e, 7za e, 7zz e : -o?=C -p,-m,-t,-x,-i?=_ a _* @w=./
7z a, 7za a, 7zz a, 7z u, 7za u, 7zz u : -p,-m,-t,-x,-i,-v?=_ -sdel:e+m* e R*
7z d, 7za d, 7zz d : e _*
7z l, 7za l, 7zz l, 7z t, 7za t, 7zz t, 7z h, 7z i : a _*
unrar, rar : @verbs @opaque
unrar x, unrar e, rar x, rar e : a C? @w=./
rar a : e R*
unrar l, unrar t, rar l, rar t : a _*
ar : _ e r*
cpio : -i,--extract:@w=./ -p,--pass-through:W -D,--directory=C -F,-I,--file=a -O=w -E=q -H,-R,-C=_ _*
gzip, pigz, bzip2, pbzip2, xz, lzma, lzip, zstd, lz4, compress, gunzip, bunzip2, unxz, unlzma, uncompress, unzstd,
 brotli : -S,-T,-b,-p,-q,-w,--suffix,--threads,--quality=_ -o,--output=w @do=compress
pax : -f,-s,-x,-b=_ -r:@w=./ -w:R* _*
gpg, gpg2 : -r,-u,--recipient,--local-user,--homedir,--passphrase,--keyserver,--cipher-algo=_ -o,--output=w
 --passphrase-file=u
 -k,-K,--list-keys,--list-secret-keys,--list-packets,--export,--export-secret-keys,--fingerprint:_*
 --delete-secret-keys,--delete-keys,--delete-secret-and-public-key:_*&@lose=keys --recv-keys,--search-keys:_*&@in
 --send-keys:_*&@out --gen-key,--full-generate-key,--quick-generate-key:_* r*
openssl : @verbs @dash _*
openssl enc, openssl dgst, openssl rsa, openssl rsautl, openssl pkeyutl, openssl pkcs8, openssl pkcs12, openssl pkcs7,
 openssl x509, openssl req, openssl genrsa, openssl genpkey, openssl ec, openssl ecparam, openssl rand, openssl
 dhparam, openssl base64, openssl crl, openssl asn1parse, openssl verify, openssl smime, openssl cms, openssl ca,
 openssl md5, openssl sha256, openssl pkey : @dash
 -in,-inkey=r -key,-CA,-CAkey,-CAfile,-config,-extfile,-certfile,-certs,-sign,-verify,-kfile,-signature=u
 -out,-keyout,-CAserial=w
 -pass,-passin,-passout,-k,-K,-iv,-S,-days,-subj,-newkey,-name,-algorithm,-pkeyopt,-addext,-md,-iter=_ r*
openssl x509, openssl req, openssl verify, openssl crl, openssl asn1parse : @dash
 -in,-inkey,-key,-CA,-CAkey,-CAfile,-config,-extfile,-untrusted,-signkey=u -out,-keyout,-CAserial=w
 -pass,-passin,-passout,-days,-subj,-newkey,-addext,-md,-set_serial,-nameopt,-inform,-outform=_ u*
openssl rand, openssl genrsa, openssl dhparam, openssl genpkey : @dash -out=w -algorithm,-pkeyopt,-rand,-pass=_ _*
openssl s_client, openssl s_server : @dash -connect=H -key,-cert,-CAfile=u -servername,-port,-accept=_ @out @in
openssl version, openssl help, openssl list, openssl ciphers, openssl speed : @dash _*
age, rage, minisign, signify : -r,-p=_ -R,-i,-s=u -o,-x=w r*
sops : -e,-d,--encrypt,--decrypt --input-type,--output-type,--kms,--age,--pgp=_ -i,--in-place:~ue --output=w u*
base58, xsel, wl-copy, xclip, pbcopy, clip : -selection,-t=_ @dash r*
pbpaste, wl-paste : _*
pandoc : -f,-t,-V,-M,--from,--to,--pdf-engine,--toc-depth,--metadata,--variable=_ -o,--output=w
 --template,--css,-H,-B,-A=q -F,-L,--filter,--lua-filter=x r*
convert, magick, mogrify : @opaque
ffmpeg : -i=r @opaque
ffprobe, exiftool, identify, sips : -i=r r*
"""
